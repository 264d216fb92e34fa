"""Addresses and options for messages: without passwords, tokens and other secrets.

A URI shows its scheme, hosts, ports and path; its user info and query become ``***``. A text that resembles an address but does not
parse as one shows its scheme alone, since any part of it may be the password.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any
from urllib.parse import unquote

import attrs

REDACTED = "***"
"""Replaces a secret."""

_HOST = r"(?:(?:[\w.-]|%2[Ff])*|\[[0-9A-Fa-f:.]+(?:%\w+)?\])(?::\d+)?"
_HOSTS = rf"{_HOST}(?:,{_HOST})*"
_URI = re.compile(
    r"(?P<scheme>(?:[\w.]+`)?[A-Za-z][A-Za-z0-9+.-]*:(?://|(?=/(?!/))))"
    r"(?:(?P<user>(?:[^\s/@:%]|%[0-9A-Fa-f]{2})*)(?P<password>:(?:[^\s/@%]|%[0-9A-Fa-f]{2})*)?@)?"
    rf"(?P<place>{_HOSTS}(?:/[^?#@;&]*)?)"
    r"(?P<query>[?#][^@]*)?"
)
_NO_ADDRESS = re.compile(rf":memory:|[^@:]*|[A-Za-z]:\\[^@:]*|[.~]*/(?!/)[^\n]*|{_HOSTS}")
"""Names, paths, and lists of hosts with ports."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_SECRET_NAME = re.compile(
    r"pass(?:word|wd|phrase|code)?|pwd|secret|token|credential|signature|\bsig\b|jaas|user[._-]?info"
    r"|(?:access|account|api|private|shared|sas)[._-]?key",
    re.IGNORECASE,
)
_SECRET_OPTION = re.compile(rf"(?:{_SECRET_NAME.pattern})[\w.'\"-]*\s*[=:]", re.IGNORECASE)
_BETWEEN = re.compile(r"[\s@:/?#&=;,%'\"\\<>()\[\]{}]+")
"""Characters at which drivers cut a malformed address."""


def printable(value: Any) -> str:
    """The ``repr`` of an option's value, without secrets; never raises."""
    try:
        return repr(_clean(value))
    except Exception:  # noqa: BLE001 - a user's __repr__ raises, or a list contains itself
        return f"<{type(value).__name__}>"


def printable_text(text: str) -> str:
    """An address, a path or a name, without secrets."""
    found = _URI.fullmatch(text)
    if found and not _SECRET_OPTION.search(found["place"]):
        user = "" if found["user"] is None else f"{REDACTED}@"
        query = f"{found['query'][0]}{REDACTED}" if found["query"] else ""
        return f"{found['scheme']}{user}{found['place']}{query}"
    if _NO_ADDRESS.fullmatch(text) and not _SECRET_OPTION.search(text):
        return text
    return f"{_scheme(text)}{REDACTED}"


def without_secrets(message: str, address: str) -> str:
    """A driver's message, without secrets of the address that it may repeat, in whole or in part.

    Args:
        message: the driver's message.
        address: the address passed to the driver.
    """
    parts = [text for part in _secret_parts(address) for text in (part, unquote(part))]
    secrets = {piece for part in parts for piece in _BETWEEN.split(part) if piece}
    if not secrets:
        return message
    longest_first = "|".join(map(re.escape, sorted(secrets, key=len, reverse=True)))
    return re.sub(rf"(?<!\w)(?:{longest_first})(?!\w)", REDACTED, message)


def is_uri(text: str) -> bool:
    """Whether a text is a URI whose user info, hosts, path and query are unambiguous."""
    return _URI.fullmatch(text) is not None


def _secret_parts(address: str) -> Iterator[str]:
    found = _URI.fullmatch(address)
    if printable_text(address) == address:
        return
    if found is None:
        yield address[len(_scheme(address)) :]
        return
    yield found["password"] or ""
    for query in (found["query"] or "", unquote(found["query"] or "")):
        option = _SECRET_OPTION.search(query)
        yield query[option.end() :] if option else ""


def _scheme(text: str) -> str:
    found = _SCHEME.match(text)
    return found[0] if found else ""


def _clean(value: Any) -> Any:
    """A value whose ``repr`` has its secrets removed."""
    if isinstance(value, str):
        return printable_text(value)
    if isinstance(value, Mapping):
        return {_clean(name): _Words(REDACTED) if _names_secret(name) else _clean(of) for name, of in value.items()}
    for kind in (tuple, list, set, frozenset):
        if isinstance(value, kind):
            return kind(map(_clean, value))
    if isinstance(value, PurePath):
        return _Words(f"{type(value).__name__}({printable_text(str(value))!r})")
    words = repr(value)
    return _Words(words if printable_text(words) == words else f"<{type(value).__name__}>")


def _names_secret(name: Any) -> bool:
    return isinstance(name, str) and _SECRET_NAME.search(name) is not None


@attrs.frozen(repr=False)
class _Words:
    """A value with this repr."""

    words: str

    def __repr__(self) -> str:
        return self.words
