"""Deletion vectors of Delta: the rows of a file that are deleted, as Roaring bitmaps (Delta's protocol, "Deletion Vectors")."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

_PORTABLE = 1681511377
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_PYTHONS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_PYTHONS = bytes.maketrans(_Z85, _PYTHONS)
_WITH_RUNS, _WITHOUT_RUNS = 12347, 12346
_FEW_CONTAINERS, _FEW_ROWS = 4, 4096
"""Fewer containers with runs have no offsets; no more rows are a list, else a bitmap."""


def path_of(vector: Mapping[str, Any], table: str) -> str | None:
    """The file that holds a vector; None: the log itself does."""
    kind, where = vector["storageType"], vector["pathOrInlineDv"]
    if kind == "i":
        return None
    if kind == "p":
        return unquote(where)
    folder, name = where[:-20], UUID(bytes=_decoded(where[-20:]))
    return "/".join(filter(None, [table, folder, f"deletion_vector_{name}.bin"]))


def deleted_rows(vector: Mapping[str, Any], content: bytes | None) -> NDArray[np.int64]:
    """The numbers of deleted rows, from 0.

    Args:
        vector: as the log has it.
        content: the file that holds it; None: the log holds it.

    Raises:
        ValueError: not a vector of a known format.
    """
    if content is None:
        data = _decoded(vector["pathOrInlineDv"])
    else:
        at = vector.get("offset") or 0
        (size,) = struct.unpack_from(">i", content, at)
        data = content[at + 4 : at + 4 + size]
    magic, count = struct.unpack_from("<iq", data)
    if magic != _PORTABLE:
        raise ValueError(f"deletion vector of format {magic}")
    at, found = 12, [np.empty(0, np.int64)]
    for _ in range(count):
        (high,) = struct.unpack_from("<i", data, at)
        rows, at = _bitmap(data, at + 4)
        found.append((high << 32) + rows)
    return np.concatenate(found)


def _decoded(text: str) -> bytes:
    return base64.b85decode(text.encode().translate(_TO_PYTHONS))


def _bitmap(data: bytes, at: int) -> tuple[NDArray[np.int64], int]:
    """A Roaring bitmap of 32 bits that begins at a place, and where it ends."""
    (cookie,) = struct.unpack_from("<I", data, at)
    kind = cookie & 0xFFFF
    if kind not in (_WITH_RUNS, _WITHOUT_RUNS):
        raise ValueError(f"deletion vector with the cookie {cookie}")
    if kind == _WITH_RUNS:
        count, at = (cookie >> 16) + 1, at + 4
        size = (count + 7) // 8
        runs = np.unpackbits(np.frombuffer(data, np.uint8, size, at), bitorder="little")
        at += size
    else:
        (count,) = struct.unpack_from("<I", data, at + 4)
        runs, at = np.zeros(count, np.uint8), at + 8
    heads = np.frombuffer(data, "<u2", 2 * count, at).astype(np.int64).reshape(-1, 2)
    at += 4 * count
    at += 4 * count if kind == _WITHOUT_RUNS or count >= _FEW_CONTAINERS else 0
    found = [np.empty(0, np.int64)]
    for (high, less), is_runs in zip(heads, runs, strict=False):
        if is_runs:
            (number,) = struct.unpack_from("<H", data, at)
            bounds = np.frombuffer(data, "<u2", 2 * number, at + 2).astype(np.int64).reshape(-1, 2)
            low, at = (
                np.concatenate([np.arange(first, first + more + 1) for first, more in bounds]),
                at + 2 + 4 * number,
            )
        elif less < _FEW_ROWS:
            low, at = np.frombuffer(data, "<u2", less + 1, at).astype(np.int64), at + 2 * (less + 1)
        else:
            bits = np.frombuffer(data, np.uint8, 8192, at)
            low, at = np.flatnonzero(np.unpackbits(bits, bitorder="little")), at + 8192
        found.append((high << 16) + low)
    return np.concatenate(found), at
