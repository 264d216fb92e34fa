"""The contract of a stage: a value that defines a transformation of its inputs.

A stage has no data. It is checked when it is composed, described in words, and bound to relations with known columns; the result
is an operator (``contract/operator.py``), which runs in process and on Spark alike. A new kind of stage is a folder in
``kinds/``: flows, runners and explain need no change.

Laws:

1. A stage is a frozen value: equal by value, hashable, picklable.
2. ``gives(takes)`` equals ``bind(takes, shards).gives``, but for the schema, which is known only when bound.
3. ``bind`` refuses checked pipelines only for their columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from beamish.contract.at_rest import AtRest, Keeps
from beamish.contract.operator import Operator
from beamish.contract.relation import Relation
from beamish.contract.stored import DictStore, Store, noted_takes
from beamish.errors import PipelineError


class Stage(Protocol):
    """A transformation of rows or panes. Subclasses override what differs."""

    @property
    def is_complete(self) -> bool:
        """Whether enough is declared to check it; not so for a pipeline under construction."""
        return True

    def calls(self) -> Iterable[str] | None:
        """The pipeline calls that declare it, for the pipeline's repr; None: cannot be declared."""
        return None

    def declaring(self, call: str, **changes: Any) -> Stage:
        """A copy with another option set, by the names of ``WindowOptions``.

        Args:
            call: of the pipeline, for messages.
            changes: the options it sets.

        Raises:
            PipelineError: it does not have that option.
        """
        raise PipelineError(f"{call}: {self!r} has no windows; {elsewhere(changes)}")

    def declared(self, option: str) -> Any:
        """The current value of an option, by the names of ``WindowOptions``, or of a table by ``versions``; None if it has no such option."""
        return None

    def check_inputs(self, names: Sequence[str]) -> None:
        """Check the inputs that its options name; ``names``: those of the pipeline (PipelineError: an input is unknown)."""
        return

    @property
    def joined_by(self) -> str:
        """The name of the call that creates it from several inputs."""
        return "merge"

    def call_that_joins(self, takes: Sequence[Relation], inputs: Sequence[tuple[str, str]]) -> str:
        """This call, for the pipeline's repr.

        Args:
            takes: what it takes, by names.
            inputs: the pipeline of each, and the same without keys.
        """
        named = (f"{relation.name}={shown}" for relation, (shown, _) in zip(takes, inputs, strict=True))
        return f"{self.joined_by}({', '.join(named)})"

    def check_call(self, call: str) -> None:
        """Check that a call about the input may be made on it, not only on its inputs.

        Raises:
            PipelineError: the call is not allowed here.
        """
        return

    def check_form(self, call: str) -> None:
        """Check that the input rows may be changes of a table, as a call declares.

        Raises:
            PipelineError: it defines the meaning of rows itself.
        """
        return

    def check(self, takes: Sequence[Relation]) -> None:
        """Check it with its inputs; schemas may be missing.

        Raises:
            PipelineError: an option is missing, or options do not work together.
        """
        return

    def check_stream(self, takes: Sequence[Relation]) -> None:
        """Check that it emits something on an unbounded stream.

        Raises:
            PipelineError: it would never emit anything.
        """
        return

    def gives(self, takes: Sequence[Relation]) -> Relation:
        """Its output, as far as known without data."""
        ...

    def asks(self, takes: Sequence[Relation], number: int) -> Sequence[str]:
        """The columns that it names of input ``number``, besides keys and event time."""
        return ()

    def asks_whole_rows(self, takes: Sequence[Relation], number: int) -> bool:
        """Whether it reads all columns of input ``number``, not only those it names."""
        return True

    def may_begin_with(self, number: int) -> bool:
        """Whether input ``number`` may have initial rows before the first step (``Shard.begin``)."""
        return False

    def bind(self, takes: Sequence[Relation], *, shards: int) -> Operator:
        """Bind it to columns and types.

        Args:
            takes: its inputs, each with its schema.
            shards: number of shards, if it can be partitioned.

        Raises:
            ColumnError: a column is missing or of the wrong type.
        """
        ...

    def describe(self, takes: Sequence[Relation], operator: Operator | None) -> Iterator[tuple[str, str]]:
        """Its lines in explain: subject and text; ``operator`` if the columns are known."""
        ...

    @property
    def needs_event_time(self) -> bool:
        """Whether its sources must declare an event time."""
        return True

    @property
    def final(self) -> Stage:
        """Its requirements on a batch."""
        return self

    def suppressed_by(self, suppress: Any) -> Stage:
        """A variant whose updates are passed to a suppress (``kinds/suppress/option.py``): its operator's updates have keys and windows.

        Raises:
            PipelineError: its output cannot be suppressed.
        """
        raise PipelineError(
            f"suppress({suppress.until!r}): only windows and changes() can be suppressed, since versions and joined rows have no end; add it to the stage before, or to one after: .then(bm.Pipeline().window(...)...suppress(...))"
        )

    def names_of_rows(self, takes: Sequence[Relation]) -> Sequence[str]:
        """The columns of forwarded input rows; empty: it emits panes."""
        return ()

    @property
    def as_input(self) -> Stage:
        """A variant whose output another stage reads."""
        return self

    @property
    def with_dropped(self) -> bool:
        """Whether it emits dropped rows beside its panes; then another stage cannot read its output."""
        return False

    @property
    def core(self) -> Stage:
        """The wrapped stage, or itself."""
        return self

    def shard_columns(self, takes: Sequence[Relation]) -> tuple[str, ...]:
        """The columns of its first input that decide a row's shard; empty: all rows are in one."""
        return takes[0].keys

    @property
    def counts_rows(self) -> bool:
        """Whether it has count windows, so that spans are of row numbers."""
        return False

    # Stored state (contract/at_rest.py)

    def keeps(self, takes: Sequence[Relation]) -> Mapping[Keeps, str | None]:
        """The views of ``state()``, and the name to select each by if there are several."""
        return {}

    def noted(self, takes: Sequence[Relation], notes: Sequence[Store], what: Keeps) -> Sequence[Relation]:
        """Its inputs with the stored schemas; ``what``: the requested kind of rows.

        Raises:
            StateError: the metadata belongs to another stage, or is too old to have them.
        """
        return noted_takes(notes, takes)

    def at_rest(self, takes: Sequence[Relation], notes: Sequence[DictStore], what: Keeps, *, shards: int) -> AtRest:
        """Bind it to the metadata of its shards.

        Args:
            takes: its inputs, with schemas if known.
            notes: the metadata entries of each shard.
            what: the requested kind of rows.
            shards: number of shards.

        Raises:
            StateError: the metadata belongs to another stage, or cannot be read.
        """
        known = all(relation.schema is not None for relation in takes)
        operator = self.bind(takes if known else self.noted(takes, notes, what), shards=shards)
        for store in notes:
            operator.open(DictStore(store))
        return operator


def elsewhere(changes: Mapping[str, Any]) -> str:
    """Where to declare an option that a stage without windows lacks, by the names of ``WindowOptions``."""
    if "having" in changes:
        return "filter the resulting DataFrame, df.filter(...), or the rows in a following stage: .then(bm.Pipeline().where(...)...)"
    if "derived" in changes:
        return "add the columns to the resulting DataFrame: df.withColumn(...)"
    if "explode" in changes:
        return "explode the rows of the resulting DataFrame, or give the column to a stage with windows: .then(bm.Pipeline().window(...).accumulate(items=First('items')).explode('items'))"
    if "key_watermark" in changes:
        return "leave it out: only windows of the rows of a source have a watermark per key"
    if "deduplication" in changes:
        return "deduplicate the rows before: bm.Pipeline().event_time(...).deduplicate('id', within='1 hour').then(...)"
    return "declare it in a stage of its own: .then(bm.Pipeline().window(bm.GlobalWindow()).trigger(Always()).accumulating().accumulate(...))"
