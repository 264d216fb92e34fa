"""Runs of a pipeline for its laws: from fresh copies, once for each script."""

from __future__ import annotations

import copy
import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, wraps
from typing import Any, TypeVar

import attrs

from beamish.accumulations.base.accumulation import Accumulation
from beamish.contract.operator import Operator, Shard
from beamish.contract.stored import Store
from beamish.flow import Flow
from beamish.ledger import live
from beamish.local import Variation, trace
from beamish.pane import Pane, PaneKind
from beamish.testing.strategies.spans import parts
from beamish.testing.stream import Runnable, TestStream
from beamish.triggers import Trigger
from beamish.windows.option import WindowOption

_T = TypeVar("_T")
LOST = frozenset(
    {"expired", "window_finished", "out_of_retention", "joined_already", "unmatched_removal", "error"},
)
"""Reasons to drop a row that depend on when it arrives, and with which rows."""


@attrs.frozen
class OfFlow:
    """A pipeline as its flow."""

    flow: Flow


@attrs.frozen(slots=False)
class Outcome:
    """The output of a run.

    Attributes:
        by_event: at each event of the script.
        dropped: number of dropped rows of each stage, by reason, each after those it depends on.
    """

    by_event: Sequence[Sequence[Pane]]
    dropped: Sequence[Mapping[str, int]]

    @cached_property
    def output(self) -> list[Pane]:
        """All of it, in order."""
        return [pane for panes in self.by_event for pane in panes]

    @cached_property
    def live(self) -> list[Pane]:
        """The panes that are live at the end."""
        return live(self.output)

    @property
    def loses(self) -> bool:
        """Whether a stage dropped a row that it would have taken at another moment."""
        return any(LOST & {reason for reason, count in of.items() if count} for of in self.dropped)

    @property
    def dropped_rows(self) -> list[Pane]:
        """The dropped rows that are listed."""
        return [pane for pane in self.output if pane.kind is PaneKind.DROPPED]


@attrs.define
class _Memory:
    """The last runs, and the variants of a pipeline by the function that makes them.

    A pipeline is known by its flow, which is kept, so that no other one has its ``id``.
    """

    runs: list[tuple[Runnable, TestStream, bool, Outcome]] = attrs.Factory(list)
    variants: dict[tuple[str, int], tuple[Runnable, Any]] = attrs.Factory(dict)


_SHARED: ContextVar[_Memory | None] = ContextVar("shared", default=None)
_KEPT = 12
"""Number of runs that are remembered: those of one example."""


@contextmanager
def shared_runs() -> Iterator[None]:
    """Laws of one pipeline and script share their runs in here."""
    token = _SHARED.set(_Memory())
    try:
        yield
    finally:
        _SHARED.reset(token)


def remembered(variant: Callable[[Runnable], _T]) -> Callable[[Runnable], _T]:
    """A function of a pipeline that is called once for each among ``shared_runs``."""

    @wraps(variant)
    def of(pipeline: Runnable) -> _T:
        memory = _SHARED.get()
        if memory is None:
            return variant(pipeline)
        at = variant.__name__, id(pipeline.flow)
        if at not in memory.variants:
            memory.variants[at] = pipeline, variant(pipeline)
        found: _T = memory.variants[at][1]
        return found

    return of


def outcome(pipeline: Runnable, script: TestStream, *, restarts: bool = False) -> Outcome:
    """The output of a pipeline for a script.

    Each run begins with copies of the pipeline's own functions, so that nothing they keep passes from run to run.

    Args:
        pipeline: the pipeline.
        script: the script.
        restarts: whether it is restarted after each step: fresh copies, with the stored state; its bundles arrive in two parts.
    """
    memory = _SHARED.get()
    for known, of, how, found in () if memory is None else memory.runs:
        if how is restarts and known.flow is pipeline.flow and of == script:
            return found
    found = _run(pipeline, script, restarts=restarts)
    if memory is not None:
        memory.runs[:] = [*memory.runs[-_KEPT + 1 :], (pipeline, script, restarts, found)]
    return found


def _run(pipeline: Runnable, script: TestStream, *, restarts: bool) -> Outcome:
    watched: list[_Watched] = []

    def watch(operator: Operator) -> Any:
        watched.append(_Watched(operator, copies=restarts and has_own(pipeline)))
        return watched[-1]

    how = Variation(packs=2 if restarts else 1, round_trip=restarts, adapt=watch)
    traced = trace(fresh(pipeline.flow).completed, script.events, how)
    dropped: list[Mapping[str, int]] = [one.dropped for one in watched]
    return Outcome([panes for _, panes in traced], dropped or [{} for _ in pipeline.flow.flows])


@remembered
def has_own(pipeline: Runnable) -> bool:
    """Whether a pipeline has parts that are not of beamish, such as an accumulation of one's own."""
    return any(is_own(part) for flow in pipeline.flow.flows for part in parts(flow.stage))


def is_own(part: Any) -> bool:
    """Whether a part of a pipeline is a function, accumulation, trigger or window option that is not of beamish."""
    if not (callable(part) or isinstance(part, Accumulation | Trigger | WindowOption)):
        return False
    of = part if hasattr(part, "__qualname__") else type(part)
    return str(of.__module__).partition(".")[0] != "beamish"


def fresh(thing: Any) -> Any:
    """A copy; the same thing if it cannot be copied."""
    try:
        return copy.deepcopy(thing)
    except Exception:  # noqa: BLE001 - such as an open file
        return thing


class _Watched:
    """An operator whose shards are known; ``copies``: each is opened by a fresh copy of it."""

    def __init__(self, operator: Operator, *, copies: bool) -> None:
        self._operator, self._copies = operator, copies
        self._shards: list[Shard] = []

    def open(self, store: Store) -> Shard:
        operator = fresh(self._operator) if self._copies else self._operator
        self._shards.append(operator.open(store))
        return self._shards[-1]

    @property
    def dropped(self) -> Mapping[str, int]:
        """Number of dropped rows, by reason, before the last restart or after it, whichever is greater."""
        counts: Counter[str] = Counter()
        for shard in self._shards:
            counts |= Counter(shard.dropped)
        return counts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._operator, name)


def shown(pane: Pane) -> str:
    """The key, window and values of a pane, in words."""
    return words(identity(pane), pane.values)


def identity(pane: Pane) -> tuple[Mapping[str, Any], Any]:
    """The key and window of a pane."""
    return pane.key, pane.window


def words(at: tuple[Mapping[str, Any], Any], values: Mapping[str, Any]) -> str:
    """A row in words: its key, its window, its values."""
    key, window = at
    parts = [f"{name}={_short(value)}" for name, value in key.items()]
    if window is not None and None not in window:
        parts.append(f"[{_short(window[0])}, {_short(window[1])})")
    return f"{' '.join(parts)}: {', '.join(f'{name}={_short(value)}' for name, value in values.items())}".lstrip(": ")


def _short(value: Any) -> str:
    if isinstance(value, dt.datetime):
        return str(value.astimezone(dt.UTC).replace(tzinfo=None)) if value.tzinfo else str(value)
    return repr(value)
