"""Joins that give each pair once (docs/rules/stages.md#each-pair-once): what is refused, and in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from beamish.accumulations.base.accumulation import Accumulation
from beamish.accumulations.joins import Join
from beamish.contract.relation import Relation
from beamish.errors import PipelineError
from beamish.kinds.suppress.option import Suppress
from beamish.kinds.window.options import WindowOptions
from beamish.modes import AccumulationMode
from beamish.windows.within import Within


def joins_once(accumulations: Mapping[str, Accumulation]) -> Iterator[tuple[str, Join]]:
    """The join that gives each pair once, with its name; it is the only accumulation of its stage."""
    for name, one in accumulations.items():
        if isinstance(one, Join) and one.once:
            yield name, one


def check_pairs_once(options: WindowOptions, takes: Sequence[Relation]) -> None:
    """Check that a stage can give each pair once.

    Raises:
        PipelineError: it accumulates, rows are taken back, or a row whose match is looked for may be in several windows.
    """
    window = options.window
    for name, join in joins_once(options.accumulations):
        where = f"accumulate({name}={join!r})"
        if any(relation.retracts for relation in takes):
            raise PipelineError(
                f"{where} over rows that are taken back: a pair that came once cannot be taken back; leave once=True out, or let the "
                "stage before be accumulating() or discarding()"
            )
        if options.mode not in (None, AccumulationMode.DISCARDING):
            raise PipelineError(
                f"{where} with {options.mode}: its panes hold what came since the last one, so say .discarding(); or leave once=True out"
            )
        if window is None or window.windowings or not window.may_overlap:
            continue
        own = f"; if each row is in one, say overlaps = False in {type(window).__name__}"
        own = own if type(window).__module__.partition(".")[0] != "beamish" else ""
        if window.merging:
            raise PipelineError(
                f"{where} in {window!r}: a row may be in several windows that become one, in which it would meet others twice{own}"
            )
        if join.keeps_left or join.keeps_right:
            raise PipelineError(
                f"{where} in {window!r}: a row may be in several windows, of which none knows whether it met another in the others; "
                f"use InnerJoin, or windows that do not overlap{own}"
            )


def check_pairs_once_suppressed(options: WindowOptions, suppress: Suppress) -> None:
    """Check that nothing holds the panes of a join that gives each pair once.

    Raises:
        PipelineError: a suppress does.
    """
    for name, join in joins_once(options.accumulations):
        raise PipelineError(
            f"suppress({suppress.until!r}) over accumulate({name}={join!r}): each pair comes once, so there is nothing to hold back; leave "
            "the suppress or once=True out"
        )


def describe_pairs_once(join: Join, options: WindowOptions) -> str:
    """When a pair comes, and what is kept, for explain."""
    window = options.window
    several = window is not None and window.may_overlap and not isinstance(window, Within)  # where a pair is in one
    words = "each comes once, when its second row does" + ", in the first window that took both" * several
    if window is not None and window.merging:
        words += " or their windows merge"
    alone = [name for name, comes in ((join.left, join.keeps_left), (join.right, join.keeps_right)) if comes]
    if alone:
        words += (
            f"; a row of {' or '.join(alone)} without a match comes once, in the last pane or when it is no longer kept"
        )
    limits = [f"the latest {rows} rows of {name}" for name, rows in join.keep_rows.items()]
    limits += [f"rows of {name} until the watermark is {kept} past them" for name, kept in join.keep_for.items()]
    of_all = f"; a key and window keeps {' and '.join(limits)}" if limits else "; a window keeps its rows"
    return words + of_all
