"""Why a stage without windows has emitted nothing for a key, or not yet: what it stores of it, as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from beamish.checkpoint.words import MOST_WINDOWS, QueryFacts, dropped_in_words, filtered, how_far
from beamish.contract.stored_keys import DUE, ENDS, ENTRIES, FIRST, LAST, STORED, THEN, VALUES
from beamish.durations import span_in_words
from beamish.errors import HIDDEN, shown, values_are_hidden
from beamish.instants import EPOCH, instant_in_words
from beamish.stage_facts import StageFacts
from beamish.watermarks import NO_WATERMARK_US

Row = Mapping[str, Any]


def why_of_keys(
    stage: StageFacts,
    asked: Mapping[str, Any],
    keys: Sequence[str],
    rows: Sequence[Row],
    query: QueryFacts | None = None,
) -> str:
    """The state of the selected keys and what it waits for, a paragraph for each key.

    Args:
        stage: the stage.
        asked: values of key columns.
        keys: the names of all of them.
        rows: of ``contract/stored_keys.py``, of these keys.
        query: for a checkpoint, the progress of the query; None: for a script.
    """
    by_key = dict[str, list[Row]]()
    for row in rows:
        by_key.setdefault(_key({name: row[name] for name in keys}), []).append(row)
    listed = list(by_key.items())[:MOST_WINDOWS]
    paragraphs = [" ".join(_stored(stage, key, own)) for key, own in listed]
    if not by_key:
        paragraphs = [
            f"Nothing is stored of {_key(asked)}. Either no row arrived for it, or all were dropped, or its state was deleted."
        ]
    due = [_us(row[DUE]) for _, own in listed for row in own if row[DUE] is not None]
    paragraphs[-1] += " " + " ".join(_of_stage(stage, min(due, default=None), query))
    if len(by_key) > MOST_WINDOWS:
        paragraphs.append(f"{len(by_key) - MOST_WINDOWS} more keys; narrow it down with why(key=...).")
    return "\n\n".join(paragraphs)


def _key(key: Mapping[str, Any]) -> str:
    return f"key {', '.join(f'{name}={shown(value)}' for name, value in key.items())}" if key else "the only key"


def _of_stage(stage: StageFacts, due_us: int | None, query: QueryFacts | None) -> Iterator[str]:
    if stage.about.lines.get("bounded"):
        yield f"How long state is stored: {stage.about.lines['bounded']}."
    yield from filtered(stage)
    yield from dropped_in_words(stage)
    yield from how_far(stage, due_us, query)


def _stored(stage: StageFacts, key: str, rows: Sequence[Row]) -> Iterator[str]:
    each = "; ".join(_part(row) for row in rows)
    yield f"Stored of {key}: {each}."
    due = sorted((_us(row[DUE]), row[THEN]) for row in rows if row[DUE] is not None)
    for at_us, then in due:
        yield f"When the watermark reaches {_reached(stage, at_us)}, {then}."
    yield from (f"{_capital(row[STORED])}: {row[THEN]}." for row in rows if row[DUE] is None and row[THEN])
    ends = [_us(row[ENDS]) for row in rows if row[ENDS] is not None]
    if ends and all(row[ENDS] is not None for row in rows):
        yield f"The last of it is deleted when the watermark reaches {_reached(stage, max(ends))}, if no row comes."


def _part(row: Row) -> str:
    first, last = (instant_in_words(_us(row[name])) if row[name] is not None else "" for name in (FIRST, LAST))
    times = f", at {first}" if first == last else f", from {first} to {last}"
    values = f", the last with {HIDDEN if values_are_hidden() else row[VALUES]}" if row[VALUES] else ""
    return f"{row[STORED]} ({row[ENTRIES]:,}){times}{values}"


def _reached(stage: StageFacts, at_us: int) -> str:
    if stage.watermark_us == NO_WATERMARK_US or at_us <= stage.watermark_us:
        return instant_in_words(at_us)
    return f"{instant_in_words(at_us)}, {span_in_words(at_us - stage.watermark_us)} from now"


def _us(time: datetime) -> int:
    return (time - EPOCH) // timedelta(microseconds=1)


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
