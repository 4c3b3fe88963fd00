"""Object stores of obstore, by its own options, which it checks itself.

obstore calls its options as the environment does, with or without the first word:
``access_key_id`` is ``AWS_ACCESS_KEY_ID``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow.fs as pafs

from skipindex.errors import TableError, first_line
from skipindex.storage.file_system.uris import StorageOptions, StorePlace

if TYPE_CHECKING:
    from obstore.store import ObjectStore

INSTALL: Final = "pip install 'skipindex[stores]'"

Pairs: TypeAlias = tuple[tuple[str, Any], ...]
"""Options by name, sorted."""

_CLASSES: Final[Mapping[str, str]] = {
    "s3": "S3Store",
    "gcs": "GCSStore",
    "azure": "AzureStore",
}
"""The class of ``obstore.store`` by the sort of store."""
_CLIENT: Final = frozenset(
    [
        *("allow_http", "allow_invalid_certificates", "connect_timeout"),
        *("proxy_url", "root_certificate", "timeout"),
    ]
)
"""Options that obstore takes for its HTTP client, and not for the store."""
_RETRY: Final = frozenset({"retry_timeout"})
"""The same for repeated requests."""
_OPEN: Final = frozenset(["region", "endpoint", "base_url", "account_name"])
"""Options whose values messages may show."""
_ENVIRONMENT: Final = ("AWS_", "AZURE_", "GOOGLE_")
_PREFIX: Final = re.compile("^(aws|azure|google)_")
_ALIASES: Final = {"endpoint_url": "endpoint"}
_REGIONS: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
_ENDPOINTS: Final = ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")


def checked_options(place: StorePlace, given: StorageOptions) -> Pairs:
    """The options that open a store, of those in a URI and those that are given.

    They have the region of an S3 bucket, so that it is looked up once.
    """
    if given and place.options.keys() - {"endpoint"}:
        raise TableError(
            f"the URI {place.uri!r} has a key or options too (accepted: all of them in "
            "storage_options, or all in the URI)"
        )
    options = {**place.options, **given}
    try:
        options = _by_short_name(options)
        opened_store(place, _sorted(options))
        if place.kind == "s3" and not _has_region(options):
            options["region"] = pafs.resolve_s3_region(place.bucket)
    except ImportError:
        raise TableError(
            f"cannot open {place.uri!r} without obstore (type: {INSTALL})"
        ) from None
    except Exception as error:  # noqa: BLE001 (obstore has many)
        reason = _masked(first_line(error), options.values()).rstrip(".")
        raise TableError(
            f"cannot open {place.uri!r} with the storage options "
            f"{sorted(map(str, options))}: {reason} (accepted: what obstore.store."
            f"{_CLASSES[place.kind]} takes)"
        ) from None  # its text may have the values
    return _sorted(options)


def _by_short_name(options: StorageOptions) -> dict[str, Any]:
    """The options by their names without the first word, as ``region``."""
    names = {name: _PREFIX.sub("", name.lower()) for name in options}
    named = {_ALIASES.get(names[name], names[name]): v for name, v in options.items()}
    if len(named) < len(options):
        raise ValueError("an option is given under two names")
    return named


def _sorted(options: StorageOptions) -> Pairs:
    return tuple(sorted(options.items()))


def _masked(text: str, values: Iterable[Any]) -> str:
    for value in filter(None, map(str, values)):
        text = text.replace(value, "***")
    return text


def _is_endpoint(name: str) -> bool:
    return name == "base_url" or name.startswith("endpoint")


def _has_region(options: StorageOptions) -> bool:
    by_environment = any(os.environ.get(name) for name in (*_REGIONS, *_ENDPOINTS))
    named = any(name.endswith("region") or _is_endpoint(name) for name in options)
    return named or by_environment


def has_own_endpoint(kind: str, options: Pairs) -> bool:
    """Whether another server than those of Amazon, Google or Microsoft is asked."""
    if any(_is_endpoint(name) for name, _ in options):
        return True
    return kind == "s3" and any(os.environ.get(name) for name in _ENDPOINTS)


def secrets_of(options: Pairs) -> tuple[str, ...]:
    """The values that no message may show."""
    return tuple(
        str(value)
        for name, value in options
        if name not in _OPEN and isinstance(value, str) and value
    )


def opened_store(place: StorePlace, options: Pairs) -> ObjectStore:
    """The bucket, opened once for its connections, and anew in another environment."""
    around = tuple(
        sorted(one for one in os.environ.items() if one[0].startswith(_ENVIRONMENT))
    )
    return _opened(place.kind, place.bucket, place.account, options, around)


@lru_cache(maxsize=256)
def _opened(
    kind: str, bucket: str, account: str, options: Pairs, _environment: Pairs
) -> ObjectStore:
    from obstore import store as stores  # noqa: PLC0415 (of the extra "stores")

    given = {name: _value(name, value) for name, value in options if value is not None}
    if any(_is_endpoint(n) and str(v).startswith("http:") for n, v in given.items()):
        given.setdefault("allow_http", "true")
    if account:
        given["account_name"] = account
    config, client, retry = (
        {name: given[name] for name in names}
        for names in (
            given.keys() - _CLIENT - _RETRY,
            given.keys() & _CLIENT,
            given.keys() & _RETRY,
        )
    )
    result: ObjectStore = getattr(stores, _CLASSES[kind])(
        bucket,
        config=config,
        client_options=client or None,
        retry_config=retry or None,
    )
    return result


def _value(name: str, value: Any) -> Any:
    """A value as obstore takes it: times are in seconds, a certificate is a path."""
    if name.endswith("timeout") and not isinstance(value, timedelta):
        return timedelta(seconds=float(str(value).removesuffix("s")))
    return Path(value).read_bytes() if name == "root_certificate" else value
