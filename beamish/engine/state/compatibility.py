"""Which stored state a pipeline can go on from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from beamish.engine.state.store import Store
from beamish.engine.state.stored_tables import DUPLICATES, INDEX, WINDOWINGS
from beamish.errors import StateError
from beamish.kernels.identity import same_identity
from beamish.plan.window_plan import WindowPlan

FORMAT = 3


def check_format(stored: int) -> None:
    """Check that this version can read a state of this format.

    Raises:
        StateError: it cannot.
    """
    if stored != FORMAT:
        raise StateError(
            f"the checkpoint has state format {stored}, this version of beamish writes {FORMAT}: start from a new "
            "checkpoint, or use the version that wrote it"
        )


def check_unnamed(store: Store) -> None:
    """Check that a store does not hold several windowings.

    Raises:
        StateError: it does.
    """
    stored = store.get(WINDOWINGS)
    if stored is not None:
        names = ", ".join(map(repr, json.loads(stored)))
        raise StateError(
            f"the checkpoint has the windowings {names}, the pipeline has one without a name: their windows would be "
            "forgotten; keep .window({...}), or start from a new checkpoint"
        )


def check_no_windows(store: Store) -> None:
    """Check that a store that begins to remember rows does not hold windows.

    Raises:
        StateError: it does.
    """
    if store.get(INDEX) is not None or store.get(WINDOWINGS) is not None:
        raise StateError(
            "the checkpoint has windows, the pipeline has none and gives rows, each once: its windows would be forgotten; keep them, or "
            "start from a new checkpoint"
        )


def check_no_rows(store: Store) -> None:
    """Check that a store that begins to hold windows is not of a stage that gives rows, each once.

    Raises:
        StateError: it is.
    """
    if store.get(DUPLICATES) is not None:
        raise StateError(
            "the checkpoint is of a pipeline without windows that gives rows, each once, and this one has windows: what it remembers "
            "would be read otherwise; leave the windows out, say them in a stage after, or start from a new checkpoint"
        )


def check_held(held: Mapping[str, Any] | None, name: str | None) -> None:
    """Check that no suppress but the one of this name holds anything.

    Args:
        held: what the state says: the ``name`` of a suppress, and how many ``updates`` it holds.
        name: of the suppress that the pipeline has; None: it has none.

    Raises:
        StateError: another one does.
    """
    if held is not None and held["name"] != name and held["updates"]:
        now = "none" if name is None else f"one called {name!r}"
        raise StateError(
            f"the checkpoint's suppress {held['name']!r} holds {held['updates']} updates in this shard, the pipeline has "
            f"{now}: they would be lost; run once with .suppress(bm.UntilTimeLimit(0, clock='event'), name={held['name']!r}), "
            "which lets all of them through, or keep it"
        )


def check_identity(stored: Mapping[str, Any], plan: WindowPlan) -> None:
    """Check that a plan means what the one meant that the state was written by.

    Raises:
        StateError: it does not.
    """
    for what, now in plan.identity.items():
        then: Any = stored.get(what, {})
        if what == "deduplication" and not then:
            continue  # rows are known again from now on
        if what != "accumulations":
            _check_same(f"{what} ", then, now)
            continue
        # One more is safe: it counts from now on. Another meaning under an old name is not.
        for name, accumulation in then.items():
            _check_same(f"accumulation {name}=", accumulation, now.get(name))


def _check_same(what: str, then: Any, now: Any) -> None:
    if not same_identity(then, now):
        raise StateError(
            f"the checkpoint was written with {what}{_words(then)}, the pipeline now has {_words(now)}: keep the old one, or "
            "start from a new checkpoint (a trigger, allowed lateness, behaviors, only_updated_panes, with_dropped and "
            "further accumulations may change; deduplicate() may be added)"
        )


def _words(identity: Any) -> str:
    """An identity much as one would write what it is of."""
    if identity is None:
        return "none"
    if isinstance(identity, Mapping) and "reads" in identity:
        return f"{_words(identity['is'])} of {', '.join(identity['reads']) or 'rows'}"
    if isinstance(identity, Mapping) and "is" in identity:
        fields = (f"{name}={_words(value)}" for name, value in identity.items() if name != "is")
        return f"{identity['is']}({', '.join(fields)})"
    return repr(identity) if isinstance(identity, str) else str(identity)
