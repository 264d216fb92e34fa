"""The contract of a stage: a value that says what becomes of what it takes.

A stage knows no data. It is checked when it is composed, described in words, and bound to relations whose columns
are known; what it is bound to is an operator (``contract/operator.py``), which runs in process and on Spark alike. A
new kind of stage is a file here with its operator in the engine: flows, runners and explain need no change.

Laws:

1. A stage is a frozen value: equal by value, hashable, picklable.
2. ``gives(takes)`` equals ``bind(takes, shards).gives``, but for the schema, which is known only when bound.
3. What ``check`` accepts ``bind`` refuses only for its columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from beamish.contract.at_rest import AtRest, Keeps
from beamish.contract.input_schemas import noted_takes
from beamish.contract.operator import Operator
from beamish.contract.relation import Relation
from beamish.contract.store import DictStore, Store
from beamish.errors import PipelineError


class Stage(Protocol):
    """What becomes of the rows or panes that it takes. Subclasses redefine what differs for them."""

    @property
    def is_complete(self) -> bool:
        """Whether enough is declared of it to check it; not so of a pipeline that is still being put together."""
        return True

    def calls(self) -> Iterable[str] | None:
        """The calls on a pipeline that declare it, for the pipeline's repr; None: there are none."""
        return None

    def declaring(self, call: str, **changes: Any) -> Stage:
        """The same with something else declared, by the names of ``WindowOptions``.

        Args:
            call: of the pipeline, for messages.
            changes: what is declared by it.

        Raises:
            PipelineError: it does not have that.
        """
        raise PipelineError(f"{call}: {self!r} has no windows; {elsewhere(changes)}")

    def declared(self, option: str) -> Any:
        """What is declared so far of an option, by the names of ``WindowOptions``, or of a table by ``versions``; None where it has none."""
        return None

    @property
    def joined_by(self) -> str:
        """The name of the call that gives it several inputs."""
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
        """Check that a call about what it takes may be made of it, and not of its inputs only.

        Raises:
            PipelineError: it may not.
        """
        return

    def check_form(self, call: str) -> None:
        """Check that the rows that it takes may be changes of a table, as a call says.

        Raises:
            PipelineError: it says itself what a row does.
        """
        return

    def check(self, takes: Sequence[Relation]) -> None:
        """Check it as a whole, with what it takes; schemas may be missing.

        Raises:
            PipelineError: something is missing, or things do not go together.
        """
        return

    def check_stream(self, takes: Sequence[Relation]) -> None:
        """Check that something would come out of it on a stream that does not end.

        Raises:
            PipelineError: nothing ever would.
        """
        return

    def gives(self, takes: Sequence[Relation]) -> Relation:
        """What it gives, as far as it is known without data."""
        ...

    def asks(self, takes: Sequence[Relation], number: int) -> Sequence[str]:
        """The columns that it names of input ``number``, beside keys and event time."""
        return ()

    def asks_whole_rows(self, takes: Sequence[Relation], number: int) -> bool:
        """Whether it takes all columns of input ``number``, beside those that it names."""
        return True

    def may_begin_with(self, number: int) -> bool:
        """Whether rows of input ``number`` may be there before the first step (``Shard.begin``)."""
        return False

    def bind(self, takes: Sequence[Relation], *, shards: int) -> Operator:
        """Bind it to columns and types.

        Args:
            takes: what it takes, each with its schema.
            shards: number of shards, where it can be cut into so many.

        Raises:
            ColumnError: a column is missing or of the wrong type.
        """
        ...

    def describe(self, takes: Sequence[Relation], operator: Operator | None) -> Iterator[tuple[str, str]]:
        """What it will do, for explain: subject and words; ``operator`` where the columns are known."""
        ...

    @property
    def needs_event_time(self) -> bool:
        """Whether the sources that it takes must say their rows' event time."""
        return True

    @property
    def final(self) -> Stage:
        """What a batch needs of it."""
        return self

    def suppressed_by(self, suppress: Any) -> Stage:
        """The same where a suppress (``kinds/suppress/option.py``) takes its updates: it binds to an operator whose updates are of keys and windows.

        Raises:
            PipelineError: what it gives cannot be held back.
        """
        raise PipelineError(
            f"suppress({suppress.until!r}): only windows and changes() are held back, since versions and joined rows have no "
            "end; say it in a stage before, or in one after: .then(bm.Pipeline().window(...)...suppress(...))"
        )

    def names_of_rows(self, takes: Sequence[Relation]) -> Sequence[str]:
        """The columns that come out last, where they are rows as they came; none: they are panes."""
        return ()

    @property
    def going_on(self) -> Stage:
        """The same where another stage takes what it gives."""
        return self

    @property
    def with_dropped(self) -> bool:
        """Whether dropped rows come out beside its panes; no other stage can then take them."""
        return False

    @property
    def core(self) -> Stage:
        """The stage that this one wraps; itself, if it is no wrapper."""
        return self

    @property
    def counts_rows(self) -> bool:
        """Whether its windows are of rows, so that spans of them are of numbers."""
        return False

    # What its shards keep, to look at (contract/at_rest.py)

    def keeps(self, takes: Sequence[Relation]) -> Mapping[Keeps, str | None]:
        """What ``state()`` can show of it, and by which name it is asked for where there are several."""
        return {}

    def noted(self, takes: Sequence[Relation], notes: Sequence[Store], what: Keeps) -> Sequence[Relation]:
        """What it takes, with the columns that its shards noted; ``what`` is asked for.

        Raises:
            StateError: the notes are of another stage, or too old to have them.
        """
        return noted_takes(notes, takes)

    def at_rest(self, takes: Sequence[Relation], notes: Sequence[DictStore], what: Keeps, *, shards: int) -> AtRest:
        """Bind it to what its shards noted.

        Args:
            takes: what it takes; with the columns where they are known.
            notes: per shard the entries of its store that say what the others hold.
            what: what is asked for.
            shards: number of shards.

        Raises:
            StateError: the notes are of another stage, or cannot be read.
        """
        known = all(relation.schema is not None for relation in takes)
        operator = self.bind(takes if known else self.noted(takes, notes, what), shards=shards)
        for store in notes:
            operator.open(DictStore(store))
        return operator


def elsewhere(changes: Mapping[str, Any]) -> str:
    """Where to declare an option that a stage without windows does not have, by the names of ``WindowOptions``."""
    if "having" in changes:
        return "filter the DataFrame that comes out, df.filter(...), or take some of its rows in a stage after: .then(bm.Pipeline().where(...)...)"
    if "derived" in changes:
        return "add the columns to the DataFrame that comes out: df.withColumn(...)"
    if "deduplication" in changes:
        return "deduplicate the rows before: bm.Pipeline().event_time(...).deduplicate('id', within='1 hour').then(...)"
    return "say it in a stage of its own: .then(bm.Pipeline().window(bm.GlobalWindow()).trigger(Always()).accumulating().accumulate(...))"
