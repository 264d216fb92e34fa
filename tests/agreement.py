"""When two lists of panes are the same: key by key, in order; dropped rows and keys in any order.

See rules/output.md#order-of-output, #dropped-rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

import attrs

from beamish import BufferFullError, Pane, PaneKind, Pipeline
from beamish.accumulations import ApproxCountDistinct
from beamish.local import Variation
from beamish.local import run as run_varied
from tests.declared_options import StageOptions, said
from tests.lines import line
from tests.twin.order import normal
from tests.twin.run import run as run_twin

FULL = "the buffer is full"


def agree(pipeline: Pipeline, script: Any) -> None:
    """Engine and twin give the same panes."""
    check_same(pipeline.run(script), run_twin(pipeline, script.events), pipeline, script, "- engine, + twin")


def agree_otherwise(pipeline: Pipeline, script: Any, how: Variation) -> None:
    """The engine gives the same panes however it is run."""
    otherwise = run_varied(pipeline.flow, script.events, how)
    check_same(pipeline.run(script), otherwise, pipeline, script, how, "- as it is, + otherwise")


def outcome(run: Callable[[], Sequence[Pane]]) -> Sequence[Pane] | str:
    """The panes of a run, or that its buffer is full."""
    try:
        return run()
    except BufferFullError:
        return FULL


def check_same(one: Sequence[Pane] | str, other: Sequence[Pane] | str, pipeline: Pipeline, *words: Any) -> None:
    """Both outcomes are the same; otherwise fails with these words and what differs."""
    if isinstance(one, str) or isinstance(other, str):
        found = [] if one == other else [repr(one), repr(other)]
    else:
        found = differences(one, other, pipeline)
    assert not found, "\n".join(map(str, [repr(pipeline), *words, *found]))


def close(a: Any, b: Any) -> bool:
    """Equal, floats to 1e-9 relative, null with null and NaN with NaN (rules/laws.md#law-order-and-shards)."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[name], b[name]) for name in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(a, datetime) and isinstance(b, datetime):
        return a == b
    return type(a) is type(b) and bool(a == b)


def key_of(pane: Pane) -> tuple[tuple[str, str], ...]:
    """The key as something to sort and look up by."""
    return tuple((name, repr(normal(value))) for name, value in pane.key.items())


def differences(left: Sequence[Pane], right: Sequence[Pane], pipeline: Pipeline) -> list[str]:
    """The differences in words; empty if the lists agree."""
    found, options = [], said(pipeline)
    for key in sorted({key_of(pane) for pane in [*left, *right]}):
        ours = _of_key(left, key, options)
        theirs = _of_key(right, key, options)
        if len(ours) != len(theirs) or not all(_close_panes(a, b, options) for a, b in zip(ours, theirs, strict=True)):
            found += [f"key {dict(key)}", *_beside(ours, theirs, options)]
    return found


def _of_key(panes: Sequence[Pane], key: Any, options: StageOptions) -> list[Pane]:
    of_key = [pane for pane in panes if key_of(pane) == key]
    once, found = any(getattr(one, "once", False) for one in options.accumulations.values()), []
    for is_dropped, run in groupby(of_key, key=lambda pane: pane.kind is PaneKind.DROPPED):
        if is_dropped:
            found += sorted(run, key=_dropped_order)
        elif once:
            # The pairs of a pane come in no order (rules/stages.md#each-pair-once).
            of_one = groupby(run, key=lambda pane: (pane.window, pane.index, pane.is_last))
            found += [pane for _, pairs in of_one for pane in sorted(pairs, key=line)]
        else:
            found += run
    return found


def _dropped_order(pane: Pane) -> str:
    values = {name: normal(value) for name, value in sorted(pane.values.items())}
    window = pane.window and [str(bound) for bound in pane.window]
    return repr((pane.reason, window, values, pane.late_by_us, pane.late_by_rows))


def _close_panes(a: Pane, b: Pane, options: StageOptions) -> bool:
    if not all(close(x, y) for x, y in zip(_plain(a, options), _plain(b, options), strict=True)):
        return False
    return all(
        abs(a.values[name] - b.values[name]) <= 1 + 5 * accumulation.rsd * a.values[name]
        for name, accumulation in options.accumulations.items()
        if isinstance(accumulation, ApproxCountDistinct)
        and a.kind is not PaneKind.DROPPED
        and name in {*a.values, *b.values}  # a window that is closed has none
    )


def _plain(pane: Pane, options: StageOptions) -> list[Any]:
    approximate = [name for name, acc in options.accumulations.items() if isinstance(acc, ApproxCountDistinct)]
    hidden = () if pane.kind is PaneKind.DROPPED else approximate
    values = {name: normal(value) for name, value in sorted(pane.values.items()) if name not in hidden}
    numbered = attrs.asdict(pane, recurse=False, filter=lambda field, _: field.name not in ("sequence", "watermark"))
    shown = numbered | {"values": values, "key": {k: normal(v) for k, v in pane.key.items()}}
    return list(shown.values())


def _beside(ours: Sequence[Pane], theirs: Sequence[Pane], options: StageOptions) -> list[str]:
    lines = []
    for i in range(max(len(ours), len(theirs))):
        a, b = ours[i : i + 1], theirs[i : i + 1]
        if a and b and _close_panes(a[0], b[0], options):
            lines.append(f"    {line(a[0])}")
        else:
            lines += [f"  - {line(pane)}" for pane in a] + [f"  + {line(pane)}" for pane in b]
    return lines
