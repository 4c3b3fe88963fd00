"""Object stores of obstore, by options under its names.

obstore calls its options as the environment does, without the first word:
``access_key_id`` is ``AWS_ACCESS_KEY_ID``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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


def _flag(value: Any) -> bool:
    if isinstance(value, str):
        if value.lower() not in {"true", "false", "1", "0"}:
            raise ValueError(f"{value!r} is neither true nor false")
        return value.lower() in {"true", "1"}
    return bool(value)


def _seconds(value: Any) -> timedelta:
    return value if isinstance(value, timedelta) else timedelta(seconds=float(value))


@dataclass(frozen=True, slots=True)
class _Kind:
    """One sort of store: a class of ``obstore.store``, and the options of the store."""

    name: str
    config: frozenset[str]

    def known(self) -> set[str]:
        """The names of all options that are accepted."""
        return {*self.config, *_CLIENT, *_RETRY}


_CLIENT: Final[Mapping[str, Callable[[Any], Any]]] = {
    "allow_http": _flag,
    "allow_invalid_certificates": _flag,
    "connect_timeout": _seconds,
    "proxy_url": str,
    "root_certificate": lambda path: Path(path).read_bytes(),
    "timeout": _seconds,
}
"""Options of the HTTP client, and what makes values of them."""
_RETRY: Final = frozenset({"retry_timeout"})
"""Options of repeated requests, in seconds."""
_KINDS: Final[Mapping[str, _Kind]] = {
    "s3": _Kind(
        "S3Store",
        frozenset(
            [
                *("access_key_id", "secret_access_key", "session_token", "region"),
                *("endpoint", "skip_signature", "virtual_hosted_style_request"),
                *("request_payer", "s3_express", "unsigned_payload"),
                *("server_side_encryption", "sse_kms_key_id"),
                *("sse_bucket_key_enabled", "sse_customer_key_base64"),
                *("disable_tagging", "disable_bulk_delete", "checksum_algorithm"),
                *("web_identity_token_file", "metadata_endpoint"),
            ]
        ),
    ),
    "gcs": _Kind(
        "GCSStore",
        frozenset(
            [
                *("service_account", "service_account_key", "application_credentials"),
                *("bearer_token", "base_url", "skip_signature"),
            ]
        ),
    ),
    "azure": _Kind(
        "AzureStore",
        frozenset(
            [
                *("account_name", "account_key", "sas_key", "token", "tenant_id"),
                *("client_id", "client_secret", "endpoint", "authority_host"),
                *("federated_token_file", "msi_endpoint", "use_azure_cli"),
                *("use_emulator", "use_fabric_endpoint", "skip_signature"),
            ]
        ),
    ),
}
_ENDPOINT: Final = {"s3": "endpoint", "gcs": "base_url", "azure": "endpoint"}
_FLAGS: Final = frozenset(
    [
        *("skip_signature", "virtual_hosted_style_request", "request_payer"),
        *("s3_express", "unsigned_payload", "sse_bucket_key_enabled"),
        *("disable_tagging", "disable_bulk_delete", "use_azure_cli"),
        *("use_emulator", "use_fabric_endpoint"),
    ]
)
_PAIR: Final = ("access_key_id", "secret_access_key")
_OPEN: Final = frozenset(["region", "endpoint", "base_url", "account_name"])
"""Options whose values messages may show."""
_ENVIRONMENT: Final = ("AWS_", "AZURE_", "GOOGLE_")
_REGIONS: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
_ENDPOINTS: Final = ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")


def checked_options(place: StorePlace, given: StorageOptions) -> Pairs:
    """The options that open a store, of those in a URI and those that are given.

    They have the region of an S3 bucket, so that it is looked up once.
    """
    kind, shown = _KINDS[place.kind], place.uri
    if given and place.options.keys() - {"endpoint"}:
        raise TableError(
            f"the URI {shown!r} has a key or options too (accepted: all of them in "
            "storage_options, or all in the URI)"
        )
    options = {**place.options, **given}
    if unknown := sorted(map(str, options.keys() - kind.known())):
        raise TableError(
            f"unknown storage options {unknown} for {shown!r} (known: "
            f"{', '.join(sorted(kind.known()))})"
        )
    try:
        _check_pair(options)
        if place.kind == "s3" and not _has_region(options):
            options["region"] = pafs.resolve_s3_region(place.bucket)
        pairs = tuple(sorted(options.items()))
        opened_store(place.kind, place.bucket, place.account, pairs)
    except ImportError:
        raise TableError(
            f"cannot open {shown!r} without obstore (type: {INSTALL})"
        ) from None
    except Exception as error:  # noqa: BLE001 (obstore has many, and panics)
        reason = first_line(error)
        for value in filter(None, map(str, options.values())):
            reason = reason.replace(value, "***")
        raise TableError(
            f"cannot open {shown!r} with the storage options {sorted(options)}: "
            f"{reason} (accepted: what obstore.store.{kind.name} takes)"
        ) from None  # its text may have the values
    return pairs


def _check_pair(options: StorageOptions) -> None:
    if len(options.keys() & _PAIR) == 1:
        raise ValueError(f"{' and '.join(_PAIR)} need both values")


def _has_region(options: StorageOptions) -> bool:
    names = {"region", "endpoint"}
    by_environment = any(os.environ.get(name) for name in (*_REGIONS, *_ENDPOINTS))
    return bool(options.keys() & names) or by_environment


def has_own_endpoint(kind: str, options: Pairs) -> bool:
    """Whether another server than those of Amazon, Google or Microsoft is asked."""
    names = {name for name, _ in options}
    if names & {"endpoint", "base_url"}:
        return True
    return kind == "s3" and any(os.environ.get(name) for name in _ENDPOINTS)


def secrets_of(options: Pairs) -> tuple[str, ...]:
    """The values that no message may show."""
    return tuple(
        str(value)
        for name, value in options
        if name not in _OPEN and isinstance(value, str) and value
    )


def opened_store(kind: str, bucket: str, account: str, options: Pairs) -> ObjectStore:
    """The bucket, opened once for its connections, and anew in another environment.

    ``options`` have passed ``checked_options``; ``account`` is of Azure, and may be
    empty.

    Raises:
        ImportError: obstore is not installed.
    """
    around = tuple(
        sorted(one for one in os.environ.items() if one[0].startswith(_ENVIRONMENT))
    )
    return _opened(kind, bucket, account, options, around)


@lru_cache(maxsize=256)
def _opened(
    kind: str, bucket: str, account: str, options: Pairs, _environment: Pairs
) -> ObjectStore:
    from obstore import store as stores  # noqa: PLC0415 (of the extra "stores")

    config, client, retry = _translated(kind, dict(options))
    if account:
        config["account_name"] = account
    make = getattr(stores, _KINDS[kind].name)
    result: ObjectStore = make(
        bucket,
        config=config,
        client_options=client or None,
        retry_config=retry or None,
    )
    return result


def _translated(
    kind: str, options: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The options for the store, for its HTTP client and for repeating requests."""
    config, client = dict[str, Any](), dict[str, Any]()
    retry = dict[str, Any]()
    if str(options.get(_ENDPOINT[kind], "")).startswith("http://"):
        client["allow_http"] = True
    for name, value in options.items():
        if value is None:
            continue
        if name in _RETRY:
            retry[name] = _seconds(value)
        elif name in _CLIENT:
            client[name] = _CLIENT[name](value)
        else:
            config[name] = _flag(value) if name in _FLAGS else value
    return config, client, retry
