# `make ssb`, `make bench` and `make test` do all of their own set-up on a fresh machine.

VENV ?= .venv
SCALE ?= 0.1
FILES ?= 100
FORM ?= flat
LAYOUT ?= hilbert
OUT ?= data/ssb
SEED ?= 1
# How long the sweeps run, which of them, and the page that gets the table of totals,
# or of `make headlines` the results.
MINUTES ?= 15
ONLY ?=
PAGE ?=
# Processes that share the tests.
JOBS ?= 2
# Options of the benchmarks, such as BENCH="kernels --scale 1".
BENCH ?=
JAVA_FILES := $(wildcard src/skipindex/spark/java/*.java src/skipindex/spark/java/*/*.java)
# Options of `make java`, such as JAVA="--jars /opt/spark/jars".
JAVA ?=
# Set by `release`: no family of Spark may be missing.
FAMILIES :=
# Options of the matrix, such as MATRIX="--cell spark-3.5 --write".
MATRIX ?=

# The scale and the folder of the benchmarks, unless they are named.
BENCHMARK_OF := --scale $(if $(filter file,$(origin SCALE)),1,$(SCALE))
HEADLINES_OUT := $(if $(filter file,$(origin OUT)),data/headlines-$(lastword $(BENCHMARK_OF)),$(OUT))

BIN := $(VENV)/bin
STAMP := $(VENV)/installed
# One jar for each family of Spark that is here.
CLASSES := src/skipindex/spark/java/classes
# Spark takes the Java of JAVA_HOME.
WITH_JAVA := JAVA_HOME=$$(.ci/java) && export JAVA_HOME &&
# Modules are compiled once, whatever the shell says: each process of the tests would
# compile them again.
COMPILED := PYTHONDONTWRITEBYTECODE=

.PHONY: help setup ssb headlines test test-all test-matrix
.PHONY: bench bench-build bench-layout bench-scale
.PHONY: bench-spark bench-price
.PHONY: sweep soundness model folder hostile concurrent queries mutants lint
.PHONY: types java format docs
.PHONY: check clean dist release
.DEFAULT_GOAL := help

help:  ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-17s %s\n", $$1, $$2 }' Makefile

setup: $(CLASSES)  ## make the virtual environment, find or install a JDK, compile the Java

ssb: $(CLASSES)  ## show the library at work on SSB data (SCALE=0.1 FILES=100 FORM=flat LAYOUT=hilbert)
	@$(WITH_JAVA) $(BIN)/python -m ssb run --scale $(SCALE) --files $(FILES) --out $(OUT) \
		--form $(FORM) --layout $(LAYOUT)

headlines: $(CLASSES)  ## measure whole queries and the articles' claims (SCALE=1; long)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[benchmark]"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[headlines]" || \
		echo "some engines cannot be installed: their rows will say so" >&2
	@$(WITH_JAVA) $(BIN)/python -m ssb headlines $(BENCHMARK_OF) --out $(HEADLINES_OUT) \
		$(if $(filter file,$(origin FILES)),,--files $(FILES)) $(if $(PAGE),--page $(PAGE))
	@$(WITH_JAVA) BENCH_DATA=$(HEADLINES_OUT)/rows $(BIN)/python -m benchmarks.rows

bench: $(CLASSES)  ## measure sizes and speeds against limits of the same run
	@$(WITH_JAVA) $(BIN)/python -m benchmarks $(BENCH)

bench-build: $(CLASSES)  ## build on 1 and 2 processes and executors (OUT=data/ssb1/lineorder_flat)
	@$(WITH_JAVA) $(BIN)/python -m benchmarks.build \
		$(if $(filter file,$(origin OUT)),data/ssb1/lineorder_flat,$(OUT))

bench-layout: $(CLASSES)  ## compare layouts, delta-rs' too (OUT=data/ssb1, scale 1)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[ssb,bench]"
	@$(WITH_JAVA) $(BIN)/python -m benchmarks.layout --files $(FILES) \
		--out $(if $(filter file,$(origin OUT)),data/ssb1,$(OUT))

bench-spark: $(CLASSES)  ## time queries through Spark until their first task, plain and pruned
	@$(WITH_JAVA) $(BIN)/python -m benchmarks.spark

bench-price: $(STAMP)  ## CPU of plans beside that of reading, whatever the condition (minutes)
	@$(BIN)/python -m benchmarks.price

bench-scale: $(STAMP)  ## plan over 1,000 to 1,000,000 files, beside peers (minutes)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[bench]"
	@$(BIN)/python -m benchmarks.scale

test: $(CLASSES)  ## run the tests that are quick, those with Spark among them
	@$(WITH_JAVA) $(COMPILED) $(BIN)/python -m pytest -m "not slow" -n $(JOBS) \
		--dist worksteal --durations=25

test-all: $(CLASSES)  ## run all tests
	@$(WITH_JAVA) $(COMPILED) $(BIN)/python -m pytest

test-matrix: $(STAMP)  ## run the tests under other versions (MATRIX="--cell spark-3.5"; long)
	@$(BIN)/python -m tests.heavy.matrix $(MATRIX)

soundness: $(CLASSES)  ## check the whole soundness matrix, write docs/soundness.md (minutes)
	@$(WITH_JAVA) $(BIN)/python -m tests.heavy.soundness --seed $(SEED) \
		--out docs/soundness.md --matrix build/soundness-matrix.md

sweep: $(CLASSES)  ## go round all long sweeps from where the last run ended (MINUTES=15 ONLY="kills")
	@$(WITH_JAVA) $(BIN)/python -m tests.heavy --minutes $(MINUTES) --only $(ONLY) \
		$(if $(filter file,$(origin SEED)),,--seed $(SEED)) $(if $(PAGE),--page $(PAGE))

queries:  ## compare random queries with skipping on and off (MINUTES=15)
	@$(MAKE) sweep ONLY="queries operators"

hostile:  ## plan and vacuum hostile tables; kill writers, damage logs and caches (MINUTES=15)
	@$(MAKE) sweep ONLY="hostile kills cached"

concurrent:  ## let writers write at once, and count the rows of each (MINUTES=15)
	@$(MAKE) sweep ONLY=concurrent

model:  ## search the model of the protocol of publication (MINUTES=15)
	@$(MAKE) sweep ONLY=model

folder:  ## let others and skipindex write tables, and compare all answers (MINUTES=15)
	@$(MAKE) sweep ONLY=folder

mutants: $(CLASSES)  ## see that every deliberately broken variant fails a test (long)
	@$(WITH_JAVA) $(BIN)/python -m tests.heavy.mutants --jobs $(JOBS)

lint: $(STAMP)  ## check style and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run -Werror $(JAVA_FILES)

types: $(STAMP)  ## check types
	$(BIN)/mypy

java: $(STAMP)  ## compile the Java sources with javac, for each PySpark that is here
	@$(WITH_JAVA) $(BIN)/python -m tests.spark.java $(JAVA)

format: $(STAMP)  ## format, and mend what can be mended
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(JAVA_FILES)

docs: $(STAMP)  ## build the documentation into build/site, with all links checked
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

dist: $(STAMP)  ## build wheel with compiled Java, source archive, CycloneDX list of dependencies, and hashes
	rm -rf dist
	@$(WITH_JAVA) $(BIN)/python -m tests.spark.java $(JAVA) $(FAMILIES)
	@$(BIN)/python -m build
	@$(BIN)/python -m twine check --strict dist/*
	@rm -rf build/installed build/tools
	@$(BIN)/python -m venv build/installed && build/installed/bin/python -m pip install \
		--quiet --disable-pip-version-check "$$(echo dist/*.whl)[spark,stores,delta,iceberg]"
	@$(BIN)/python -m venv build/tools && build/tools/bin/python -m pip install \
		--quiet --disable-pip-version-check "cyclonedx-bom>=7,<8"
	@build/tools/bin/cyclonedx-py environment --pyproject pyproject.toml \
		--mc-type library --output-reproducible -o dist/skipindex.cdx.json \
		build/installed/bin/python
	@cd dist && sha256sum -- * >SHA256SUMS

release: FAMILIES := --all
release: dist  ## upload what `make dist` built to PyPI, if this commit has the version's tag
	@version=$$($(BIN)/python -c "import skipindex; print(skipindex.__version__)") && \
		git diff --quiet HEAD && git tag --points-at HEAD | grep -qx "v$$version" || \
		{ echo "tag this commit first: git tag v$$version" >&2; exit 1; }
	@$(BIN)/python -m twine upload dist/*.whl dist/*.tar.gz

check: lint types test  ## all that a change must pass

clean:  ## remove what builds and tools left; keeps the environment and data
	rm -rf build dist $(CLASSES) .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -rf spark-warehouse metastore_db derby.log src/*.egg-info
	find src ssb tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml src/skipindex/__init__.py
	@[ -x $(BIN)/python ] || { python=$$(.ci/python) && \
		echo "making $(VENV) with $$python" && "$$python" -m venv $(VENV); }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[ssb,dev]"
	@touch $@

$(CLASSES): $(STAMP) $(JAVA_FILES)
	@$(WITH_JAVA) $(BIN)/python -m tests.spark.java $(JAVA)
	@touch $@
