"""The package as it is installed: links, names, and what the wheel holds."""

from __future__ import annotations

import inspect
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from functools import partial
from importlib.metadata import version
from pathlib import Path

import pytest

import skipindex as sx
from skipindex import api, errors
from skipindex.api import types
from tests.spark.java.javac import CLASSES, javac
from tests.tables import api_members

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "skipindex"


def run(code: str, *, folder: Path = ROOT) -> str:
    """Run some code in a Python of its own; what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


def test_tests_draw_the_same_examples_unless_told_otherwise() -> None:
    """A newcomer's first command fails for no luck of the draw."""
    code = """if True:
        import os
        os.environ.pop("HYPOTHESIS_PROFILE", None)
        import tests.conftest
        from hypothesis import settings
        print(settings.default.derandomize, settings.get_profile("anew").derandomize)
    """
    assert run(code) == "True False"
    nightly = (ROOT / ".github" / "workflows" / "nightly.yml").read_text()
    assert "HYPOTHESIS_PROFILE: anew" in nightly


def test_the_core_needs_no_engine_and_no_command_line() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {re.split(r"[<>=,]", one)[0] for one in project["dependencies"]}
    assert needed == {
        *("crc32c", "loky", "numpy", "pyarrow", "pybloom-live", "pyroaring"),
        *("xxhash", "zstandard"),
    }
    extras = project["optional-dependencies"]
    named = [one.partition(">")[0] for one in extras["cli"]]
    assert named == ["skipindex[sql]", "click", "rich"]
    assert "skipindex[cli]" in extras["spark"]


@pytest.mark.parametrize("name", ["indexes", "planner"])
def test_links_at_the_top_are_relative_and_right(name: str) -> None:
    link, target = ROOT / name, f"src/skipindex/{name}"
    if link.is_symlink():
        assert str(link.readlink()) == target
        assert link.resolve() == SOURCE / name
    elif link.exists():  # git writes the target where there are no symbolic links
        assert link.read_text() == target
    else:
        pytest.skip("a source archive has no links")


def test_no_module_is_loaded_under_two_names() -> None:
    """The links make ``import indexes`` work by accident; nobody may rely on it."""
    run(
        """if True:
        import pkgutil, sys, collections
        import skipindex
        for info in pkgutil.walk_packages(skipindex.__path__, "skipindex."):
            try:
                __import__(info.name)
            except ModuleNotFoundError as error:  # of the extra for Spark
                missing = str(error.name).partition(".")[0]
                assert missing in {"pandas", "py4j", "pyspark"}, error
        import os
        names = collections.defaultdict(list)
        for name, module in list(sys.modules.items()):
            path = getattr(module, "__file__", None)
            if path and "skipindex" in path and "site-packages" not in path:
                names[os.path.realpath(path)].append(name)
        twice = {p: n for p, n in names.items() if len(n) > 1}
        assert len(names) > 40, len(names)
        assert not twice, twice
        """
    )


def test_every_public_name_is_there_and_is_listed() -> None:
    assert sx.__all__ == sorted(sx.__all__)
    assert len(sx.__all__) <= 35
    for name in sx.__all__:
        assert getattr(sx, name).__module__.startswith("skipindex")
    assert set(sx.__all__) <= set(dir(sx))
    here = {
        name
        for name, value in vars(sx).items()
        if not name.startswith("_")
        and str(getattr(value, "__module__", "")).startswith("skipindex")
    }
    assert here <= set(sx.__all__), "imported, and not listed"


def test_every_public_name_comes_from_the_api() -> None:
    more = {
        *("CacheSession", "CommitLock", "record_queries"),
        *("set_cache_bytes", "set_cache_dir", "set_commit_lock"),
    }
    assert _exported() == {*sx.__all__, *more}


def _exported() -> set[str]:
    """What ``from skipindex.api import *`` gives."""
    names: dict[str, object] = {}
    exec("from skipindex.api import *", names)
    submodules = {name for _, name, _ in pkgutil.iter_modules(api.__path__)}
    return names.keys() - submodules - {"__builtins__", "annotations"}


def test_every_type_of_a_public_signature_can_be_imported() -> None:
    """What calls take and return is a public name, or in ``skipindex.api.types``."""
    calls = [getattr(sx, name) for name in sx.__all__]
    for cls in (sx.Table, sx.Plan):
        calls += [v for n, v in api_members(cls).items() if not n.startswith("_")]
    named = set()
    for call in calls:
        function = getattr(call, "func", getattr(call, "fget", call))
        if inspect.isfunction(function):
            signature = str(inspect.signature(function))
            named |= set(re.findall(r"[A-Z][A-Za-z]+", signature))
    ours = {name for name in named if _is_ours(name)}
    assert {"BuildReport", "Quality", "Stage"} <= ours
    assert ours <= {*_exported(), *types.__all__, "BoundPredicate", "TableState"}


def _is_ours(name: str) -> bool:
    return any(
        str(getattr(getattr(module, name, 0), "__module__", "")).startswith("skipindex")
        for key, module in list(sys.modules.items())
        if key.startswith("skipindex")
    )


def test_every_error_is_drawn() -> None:
    found = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, sx.SkipIndexError)
    }
    drawn = str(errors.__doc__)
    assert all(name in drawn for name in found)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'skipindex' has no attribute 'nope'"):
        _ = sx.nope  # type: ignore[attr-defined]


def test_importing_and_planning_need_no_pyspark(tmp_path: Path) -> None:
    out = run(
        f"""if True:
        import sys
        sys.modules["pyspark"] = None  # an import of it would raise
        import skipindex as sx
        sx.plan_files
        print([m for m in ("pandas", "loky", "sqlglot") if m in sys.modules])
        import pyarrow as pa, pyarrow.parquet as pq
        pq.write_table(pa.table({{"a": [1, 2]}}), r"{tmp_path}/f.parquet")
        table = sx.build_indexes(r"{tmp_path}", {{"a": "bitmap"}}, workers=1).table
        print(table.plan("a = 3").paths)
        """
    )
    assert out.split() == ["[]", "[]"]


def test_importing_loads_nothing() -> None:
    out = run(
        """if True:
        import sys
        import skipindex
        heavy = ("pyspark", "pandas", "pytest", "loky", "sqlglot", "pyarrow", "numpy")
        print([m for m in heavy if m in sys.modules])
        """
    )
    assert out == "[]"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist of a copy of the repository, and the wheel built from that sdist."""
    folder = tmp_path_factory.mktemp("dist")
    clone = tmp_path_factory.mktemp("clone") / "skipindex"
    scratch = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info")
    shutil.copytree(ROOT, clone, symlinks=True, ignore=scratch)
    for left in ("build", "dist"):  # of the root alone: a package is named build too
        shutil.rmtree(clone / left, ignore_errors=True)
    command = [sys.executable, "-m", "build", "--no-isolation", "-o", str(folder)]
    subprocess.run([*command, str(clone)], check=True, capture_output=True)
    return folder


def unpacked(built: Path, folder: Path) -> Path:
    """The root of the source archive."""
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (root,) = folder.iterdir()
    return root


@pytest.mark.slow
def test_the_wheel_of_the_sdist_holds_exactly_the_package(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    expected = {
        str(path.relative_to(SOURCE.parent))
        for path in SOURCE.rglob("*")
        if path.is_file() and not path.name.startswith(".")
        if "__pycache__" not in path.parts
    }
    assert names == expected
    assert "skipindex/py.typed" in names


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.skipif(javac() is None, reason="there is no JDK")
def test_a_newcomer_gets_from_pip_to_the_last_line_of_the_readme(
    built: Path, tmp_path: Path
) -> None:
    """In an environment that has what ours has, but for the package itself."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    wheel = [*pip, "wheel", ".", "--no-deps", "--no-build-isolation", "--no-index"]
    root, wheels = unpacked(built, tmp_path), tmp_path / "wheels"
    shutil.rmtree(root / CLASSES.relative_to(ROOT), ignore_errors=True)
    call = partial(subprocess.run, check=True, capture_output=True, text=True)
    call([*wheel, "-w", str(wheels)], cwd=root)
    (made,) = wheels.iterdir()
    call([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")])
    (site,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    call([*pip, "install", "--no-deps", "--no-index", "--target", str(site), str(made)])
    # A path in a .pth file is searched, and the .pth files in it are not read.
    (site / "others.pth").write_text(sysconfig.get_path("purelib"))
    example = re.search(
        r"```python\n(.*?)```", (root / "README.md").read_text(), re.DOTALL
    )
    assert example is not None
    events = tmp_path / "events"
    lines = example[1].replace("/data/events", str(events))
    env = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    env["PYSPARK_PYTHON"] = python = str(tmp_path / "env" / "bin" / "python")
    call([python, "-m", "skipindex", "sample", str(events)], cwd=tmp_path, env=env)
    code = f"{lines}\nprint(sx.__file__)"
    out = call([python, "-c", code], cwd=tmp_path, env=env).stdout.splitlines()
    assert out[0].startswith("2 of 40 files for: user = 4711")
    count, last, place = out[-3:]
    assert int(count) > 0
    assert "2 of 40" in last
    assert Path(place).is_relative_to(site)


@pytest.mark.slow
@pytest.mark.skipif(javac() is None, reason="there is no JDK")
@pytest.mark.parametrize("has_javac", [True, False])
def test_a_wheel_has_classes_where_there_is_a_compiler(
    built: Path, tmp_path: Path, has_javac: bool
) -> None:
    root = unpacked(built, tmp_path)
    shutil.rmtree(root / CLASSES.relative_to(ROOT), ignore_errors=True)
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel"]
    done = subprocess.run(
        [*command, "-o", str(tmp_path / "dist"), str(root)],
        env=dict(os.environ) if has_javac else {"PATH": ""},
        check=True,
        capture_output=True,
        text=True,
    )
    (wheel,) = (tmp_path / "dist").iterdir()
    names = zipfile.ZipFile(wheel).namelist()
    assert sum(name.endswith(".jar") for name in names) == has_javac
    assert ("no Java classes" in done.stdout) != has_javac


def test_the_version_is_told_by_the_installer() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev0)?", sx.__version__)
    assert version("skipindex") == sx.__version__


@pytest.mark.slow
def test_the_sdist_carries_what_its_tests_need(built: Path, tmp_path: Path) -> None:
    """Some tests run from the unpacked sdist, with nothing of the repository."""
    root = unpacked(built, tmp_path)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    chosen = ["-m", "not spark and not slow", "tests/expressions", "tests/api"]
    golden = "tests/indexes/test_golden.py"
    done = subprocess.run(
        [*command, *chosen, golden, "tests/ssb/test_ssb_queries.py"],
        capture_output=True,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root / "src")},
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout
