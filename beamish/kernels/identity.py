"""What a checkpoint holds fast of an option."""

from __future__ import annotations

from typing import Any


def identity(value: Any) -> Any:
    """TODO"""
    return repr(value)


def same_identity(then: Any, now: Any) -> bool:
    """TODO"""
    return bool(then == now)
