"""How rows that come again are known, in a stage of windows or of rows alone: what is refused, and in words."""

from __future__ import annotations

from collections.abc import Sequence

from beamish.contract.relation import Relation
from beamish.durations import Duration
from beamish.errors import PipelineError
from beamish.kinds.deduplicate.option import FOREVER, Deduplication


def describe_deduplication(options: Deduplication, relation: Relation) -> str:
    """When a row is one that came before, for explain."""
    by = ", ".join(dict.fromkeys(map(str, (*relation.keys, *options.columns))))
    if options.within is None:
        return f"a row equal in {by} to one that its window took is dropped; a window knows them as long as it is kept"
    if options.within == FOREVER:
        return f"a row equal in {by} to one before it is dropped; each is remembered forever"
    return (
        f"a row equal in {by} to one before it is dropped; each is known until the watermark is {options.within} past its event time, "
        "and a row older than that is dropped too"
    )


def check_deduplication(options: Deduplication, takes: Sequence[Relation]) -> None:
    """Check that what a stage takes can be known again.

    Raises:
        PipelineError: rows are taken back, or are of several inputs.
    """
    if any(relation.retracts for relation in takes):
        of_stage = (
            "deduplicate in a stage before, whose rows are not, or let that stage be accumulating() or discarding()"
        )
        fix = "leave it out, since a table holds each row once" if takes[0].is_signed else of_stage
        raise PipelineError(
            f"{options.call} over rows that are taken back: a row and its removal have one identity; {fix}"
        )
    if not takes[0].has_timestamps:
        raise PipelineError(
            f"{options.call} of panes without timestamp: until when is a row known? Give the stage before a timestamp_combiner, such as "
            ".timestamp_combiner(bm.TimestampCombiner.LATEST), or windows that end"
        )
    if options.within is not None and takes[0].behind_us >= options.within.us:
        raise PipelineError(
            f"{options.call}: what a suppress holds, or a window gives when it expires, comes when the watermark is "
            f"{Duration(takes[0].behind_us)} past its time, when its ID has expired; say a longer within"
        )
    if takes[0].name is not None:
        raise PipelineError(
            f"{options.call} of a merge: whose column is that? Say it of an input, with within=...: "
            "bm.merge(orders=bm.Pipeline()....deduplicate('id', within='1 hour'), ...)"
        )
