"""Deduplication in window stages and in stages of its own: checks, and texts for explain."""

from __future__ import annotations

from collections.abc import Sequence

from beamish.contract.relation import Relation
from beamish.durations import Duration
from beamish.errors import PipelineError
from beamish.kinds.deduplicate.option import FOREVER, Deduplication


def describe_deduplication(options: Deduplication, relation: Relation) -> str:
    """The definition of a duplicate, for explain."""
    by = ", ".join(dict.fromkeys(map(str, (*relation.keys, *options.columns))))
    if options.within is None:
        return f"a row equal in {by} to an earlier one in its window is dropped; ids are stored as long as the window"
    if options.within == FOREVER:
        return f"a row equal in {by} to an earlier one is dropped; ids are stored forever"
    return f"a row equal in {by} to an earlier one is dropped; an id is stored until the watermark is {options.within} past its event time, and an older row is dropped too"


def check_deduplication(options: Deduplication, takes: Sequence[Relation]) -> None:
    """Check that an input can be deduplicated.

    Raises:
        PipelineError: rows are retracted, or come from several inputs.
    """
    if any(relation.retracts for relation in takes):
        of_stage = (
            "deduplicate in an earlier stage without retractions, or make that stage accumulating() or discarding()"
        )
        fix = "leave it out, since a table holds each row once" if takes[0].is_signed else of_stage
        raise PipelineError(
            f"{options.call} over rows that are retracted: a row and its retraction have the same id; {fix}"
        )
    if not takes[0].has_timestamps:
        raise PipelineError(
            f"{options.call} of panes without timestamp: when do ids expire? Give the stage before a timestamp_combiner, such as "
            ".timestamp_combiner(bm.TimestampCombiner.LATEST), or windows that end"
        )
    if options.within is not None and takes[0].behind_us >= options.within.us:
        raise PipelineError(
            f"{options.call}: panes of a suppress, or of an expiring window, are emitted when the watermark is {Duration(takes[0].behind_us)} past their time, when their ids have expired; give a longer within"
        )
    if takes[0].name is not None:
        raise PipelineError(
            f"{options.call} of a merge: ambiguous column: deduplicate an input instead, with within=...: "
            "bm.merge(orders=bm.Pipeline()....deduplicate('id', within='1 hour'), ...)"
        )
