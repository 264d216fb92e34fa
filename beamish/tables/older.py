"""Window stage metadata of state format 3, as a spec (``kinds/window/plan/spec.py``).

Columns were texts ("name: type", "name type"), and so was what rows are deduplicated by ("deduplicate('id', within='1 hour') of id int64").
A shard keeps such a note as it is, until something of the stage changes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from beamish.durations import LONGEST_US, duration
from beamish.kernels.identity import identity
from beamish.kernels.spec import UnreadableError, read_spec
from beamish.modes import TimestampCombiner
from beamish.tables.notes import FORMAT, check_format
from beamish.triggers.default import Default
from beamish.windows.option import WindowOption

OLDER = "older"
"""The entry with the earlier format that metadata was read from."""
_TYPE = re.compile(r"[a-z0-9_]+([\[(<].*)?")
_WITHIN = re.compile(r", within='([^']*)'\)")
_MODES = {"accumulating": "accumulating", "retracting": "accumulating_and_retracting"}
_SUBJECTS = {"closing": "expiry"}
"""The lines of explain that had another subject."""
_DEFAULTS = {"combiner": TimestampCombiner.END_OF_WINDOW.value, "trigger": identity(Default())}


def upgraded(about: dict[str, Any]) -> dict[str, Any]:
    """The metadata of a shard of windows with its spec; ``about``: as it is stored, in this format or an earlier one.

    Raises:
        StateError: in another format.
    """
    check_format(about["format"])
    if "spec" in about:
        return about
    older = {name: about[name] for name in ("format", "identity", "changeable")}
    rest = {name: value for name, value in about.items() if name not in older}
    return {**rest, "format": FORMAT, "spec": _spec(older["identity"], older["changeable"]), OLDER: older}


def _spec(stored: Mapping[str, Any], changeable: Mapping[str, Any]) -> dict[str, Any]:
    ids, formulas = _ids(stored.get("deduplication")), stored.get("conditions and computed columns", {})
    accumulations = stored["accumulations"].items()
    options = {
        "window": stored["window"],
        "mode": _MODES.get(stored["mode"]),
        "combiner": stored["timestamp combiner"],
        "where": formulas.get("where"),
        "deduplication": ids,
        "derived": formulas.get("with_columns"),
        "having": formulas.get("having"),
        "accumulations": [[name, of["is"]] for name, of in accumulations],
    }
    lateness = "late_rows" if _counts_rows(stored["window"]) else "allowed_lateness"
    changes = {"trigger": changeable["trigger"], lateness: changeable["lateness"]}
    return {
        "shards": stored["shards"],
        "inputs": stored["inputs"],
        "keys": [_column(text, ": ") for text in stored["keys"]],
        "ids": [] if ids is None else [_column(text, " ") for text in _texts(stored["deduplication"])],
        "reads": {name: [_column(text, " ") for text in of["reads"]] for name, of in accumulations},
        "keeps_rows": bool(stored.get("rows that are kept for on_error('drop')")),
        **{
            part: {name: value for name, value in of.items() if value and value != _DEFAULTS.get(name)}
            for part, of in (("options", options), ("changeable", changes))
        },
    }


def described(about: Mapping[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """An earlier description, with the lines of explain as texts: its inputs and the rest, named as in ``flow.py``."""
    inputs = [
        {"moves" if name == "watermark" else name: value for name, value in one.items() if name != "idle_us"}
        for one in about.get("inputs", ())
    ]
    lines = {
        _SUBJECTS.get(subject, subject): words.replace("watermark passes its end", "watermark reaches its end")
        for subject, words in about.get("lines", ())
    }
    renamed = {"number": about.get("stage", 0), "lines": lines}
    return inputs, renamed | {name: about[name] for name in ("suppress", "only_updated") if name in about}


def _counts_rows(window: Any) -> bool:
    try:
        return bool(read_spec(window, WindowOption).counts_rows)
    except UnreadableError:
        return False


def _column(text: str, mark: str) -> list[str | None]:
    """The name and the type of a column; either may hold the mark."""
    if mark == " " and _TYPE.fullmatch(text):
        return [None, text]
    ends = (at for at in re.finditer(re.escape(mark), text) if _TYPE.fullmatch(text, at.end()))
    end = min(ends, key=re.Match.end)  # the first
    return [text[: end.start()], text[end.end() :]]


def _ids(text: str | None) -> dict[str, Any] | None:
    """The deduplication spec."""
    if not text:
        return None
    within = _WITHIN.search(text.partition(" of ")[0])
    us = None if within is None else LONGEST_US if within[1] == "forever" else duration("within", within[1]).us
    columns = [_column(column, " ")[0] for column in _texts(text)]
    return {"is": "Deduplication", "columns": columns, **({} if us is None else {"within": us})}


def _texts(text: str) -> list[str]:
    """The columns of such a text, separated by commas, which also occur in types."""
    columns, depth, begin = [], 0, 0
    text = text.partition(" of ")[2]
    for at, sign in enumerate(text):
        depth += (sign in "<([") - (sign in ">)]")
        if depth == 0 and text.startswith(", ", at):
            columns.append(text[begin:at])
            begin = at + 2
    return [*columns, text[begin:]]
