"""URIs: what they name, and what of them may be shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from skipindex.errors import TableError

StorageOptions: TypeAlias = Mapping[str, Any]
"""What a store is opened with by name, such as ``access_key`` of S3."""

KINDS: Final[Mapping[str, str]] = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gcs",
    "gcs": "gcs",
    "abfs": "azure",
    "abfss": "azure",
    "wasb": "azure",
    "wasbs": "azure",
}
"""The sort of object store by scheme, as Spark and Hadoop spell it."""

SCHEMES: Final[Mapping[str, str]] = {"s3a": "s3", "s3n": "s3"}
"""Hadoop's names of a scheme that Arrow knows under another."""

ACCEPTED: Final = (
    "a local path, or a file:, s3:, s3a:, gs:, abfss:, wasbs: or hdfs: URI"
)
_USER: Final = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+://)([^/@]*)@")
_AZURE_HOST: Final = re.compile(r"([^.]+)\.(blob|dfs)\.(.+)")


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
    is_azure = user[1].startswith(("abfs", "wasb"))
    name = user[2].partition(":")[0] if is_azure else ""
    return f"{user[1]}{name}{'@' if name else ''}{uri[user.end() :]}"


@dataclass(frozen=True, slots=True)
class StorePlace:
    """A folder of an object store, as a URI names it.

    ``kind`` is ``s3``, ``gcs`` or ``azure``, ``uri`` has nothing secret, and ``folder``
    no slash at its ends.  ``account`` is of Azure, empty where the options or the
    environment name it; ``options`` stood in the URI, a key for example.
    """

    kind: str
    uri: str
    bucket: str
    folder: str
    account: str
    options: StorageOptions

    @property
    def root(self) -> str:
        """The bucket and the folder."""
        return f"{self.bucket}/{self.folder}".rstrip("/")


def store_place(uri: str) -> StorePlace | None:
    """The folder of an object store that a URI names; None if it names another one.

    >>> store_place("s3a://bucket/a%20b/").root
    'bucket/a b'
    """
    parts = urlsplit(uri)
    kind = KINDS.get(parts.scheme)
    if kind is None:
        return None
    shown = without_secrets(uri)
    options: dict[str, Any] = dict(parse_qsl(parts.query))
    host, folder, account = str(parts.hostname or ""), unquote(parts.path), ""
    bucket = parts.netloc.rpartition("@")[2]
    match kind:
        case "azure":
            match = _AZURE_HOST.fullmatch(host)
            bucket = unquote(parts.username or "")
            if match is None:
                bucket = bucket or parts.netloc.rpartition("@")[2]
            else:
                account = match[1]
                if not match[3].endswith(("core.windows.net", "fabric.microsoft.com")):
                    options.setdefault("endpoint", f"https://{account}.blob.{match[3]}")
            if parts.password is not None:
                options["account_key"] = unquote(parts.password)
            if not bucket:
                bucket, _, folder = folder.lstrip("/").partition("/")
        case "s3" if parts.username is not None:
            options["access_key_id"] = unquote(parts.username)
            options["secret_access_key"] = unquote(parts.password or "")
        case _:
            pass
    if not bucket:
        raise TableError(f"{shown!r} names no bucket (accepted: {ACCEPTED})")
    return StorePlace(kind, shown, bucket, folder.strip("/"), account, options)


def arrow_root(uri: str) -> str:
    """The folder that a URI names, as a path in its file system of pyarrow."""
    try:
        _, root = pafs.FileSystem.from_uri(uri)
    except (pa.ArrowInvalid, OSError) as error:
        shown = without_secrets(uri)
        reason = str(error).replace(uri, shown)
        raise TableError(
            f"cannot open {shown!r}: {reason} (accepted: {ACCEPTED})"
        ) from None  # its text has the URI as it was given
    return str(root).rstrip("/")
