"""URIs, and the file systems of pyarrow that they name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from skipindex.errors import TableError

StorageOptions: TypeAlias = Mapping[str, Any]
"""Arguments of pyarrow's file system by name, such as ``access_key`` of S3."""

_USER: Final = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+://)([^/@]*)@")
_S3: Final = frozenset(
    [
        *("access_key", "secret_key", "session_token", "anonymous", "role_arn"),
        *("session_name", "external_id", "load_frequency", "region", "scheme"),
        *("endpoint_override", "request_timeout", "connect_timeout"),
        *("force_virtual_addressing", "tls_ca_file_path"),
    ]
)
_GCS: Final = frozenset(
    [
        *("anonymous", "access_token", "credential_token_expiration", "scheme"),
        *("target_service_account", "endpoint_override", "retry_time_limit"),
        "project_id",
    ]
)
_AZURE: Final = frozenset(
    [
        *("account_key", "sas_token", "tenant_id", "client_id", "client_secret"),
        *("blob_storage_authority", "blob_storage_scheme"),
        *("dfs_storage_authority", "dfs_storage_scheme"),
    ]
)
_STORES: Final = {
    "s3": ("S3FileSystem", _S3),
    "gs": ("GcsFileSystem", _GCS),
    "gcs": ("GcsFileSystem", _GCS),
    "abfs": ("AzureFileSystem", _AZURE),
    "abfss": ("AzureFileSystem", _AZURE),
}
"""By scheme: the class of ``pyarrow.fs``, and the options that are accepted."""


def without_secrets(uri: str) -> str:
    """A URI without the keys, the password and the options that may be in it.

    >>> without_secrets("s3://KEY:SECRET@bucket/t?region=eu-west-1")
    's3://bucket/t'
    >>> without_secrets("abfss://container:SECRET@account.dfs.core.windows.net/t")
    'abfss://container@account.dfs.core.windows.net/t'
    """
    uri = uri.partition("?")[0]
    user = _USER.match(uri)
    if user is None:
        return uri
    # Azure names the container there; a key of S3 is itself not to be shown.
    name = user[2].partition(":")[0] if user[1].startswith("abfs") else ""
    return f"{user[1]}{name}{'@' if name else ''}{uri[user.end() :]}"


def root_of(uri: str) -> str:
    """The folder that a URI names, as a path in its file system.

    Raises:
        TableError: pyarrow has no file system for the URI.
    """
    try:
        _, root = pafs.FileSystem.from_uri(uri)
    except (pa.ArrowInvalid, OSError) as error:
        shown = without_secrets(uri)
        reason = str(error).replace(uri, shown)
        raise TableError(
            f"cannot open {shown!r}: {reason} (accepted: a local path, file:, s3:, "
            "gs:, hdfs: or abfss: URI)"
        ) from None  # its text has the URI as it was given
    return str(root).rstrip("/")


def checked_options(uri: str, options: StorageOptions) -> tuple[str, StorageOptions]:
    """The folder that a URI names, and options that open its file system.

    The options have the region of an S3 bucket, so that it is looked up once.

    Raises:
        TableError: there are no options for the scheme, or an option is unknown, has a
            value that pyarrow refuses, or the URI has options too.
    """
    shown = without_secrets(uri)
    parts = urlsplit(uri)
    if parts.scheme not in _STORES:
        raise TableError(
            f"{shown!r} takes no storage_options (accepted: an s3:, gs: or abfss: URI)"
        )
    name, known = _STORES[parts.scheme]
    unknown = sorted(map(str, options.keys() - known))
    if unknown:
        raise TableError(
            f"unknown storage options {unknown} for {shown!r} (known: "
            f"{', '.join(sorted(known))})"
        )
    if uri != shown:
        raise TableError(
            f"the URI {shown!r} has a key or options too (accepted: all of them in "
            "storage_options, or all in the URI)"
        )
    # A URI with a region is read without asking S3 for it.
    root = root_of(f"{uri}?region=any" if known is _S3 else uri)
    try:
        if known is _S3 and not options.keys() & {"region", "endpoint_override"}:
            options = {**options, "region": pafs.resolve_s3_region(parts.netloc)}
        open_store(uri, options)
    except (TypeError, ValueError, OSError) as error:
        reason = str(error)
        for value in filter(None, options.values()):
            reason = reason.replace(str(value), "***")
        raise TableError(
            f"cannot open {shown!r} with the storage options {sorted(options)}: "
            f"{reason} (accepted: what pyarrow.fs.{name} takes)"
        ) from None  # its text may have the values
    return root, options


def open_store(uri: str, options: StorageOptions) -> pafs.FileSystem:
    """The file system of a URI, with options that ``checked_options`` has passed."""
    parts = urlsplit(uri)
    name, known = _STORES[parts.scheme]
    account = [str(parts.hostname).partition(".")[0]] if known is _AZURE else []
    return getattr(pafs, name)(*account, **options)
