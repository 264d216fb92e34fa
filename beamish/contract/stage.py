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

from beamish.contract.operator import Operator
from beamish.contract.relation import Relation
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


def elsewhere(changes: Mapping[str, Any]) -> str:
    """Where to declare an option that a stage without windows does not have, by the names of ``WindowOptions``."""
    if "having" in changes:
        return "filter the DataFrame that comes out, df.filter(...), or take some of its rows in a stage after: .then(bm.Pipeline().where(...)...)"
    if "derived" in changes:
        return "add the columns to the DataFrame that comes out: df.withColumn(...)"
    if "deduplication" in changes:
        return "deduplicate the rows before: bm.Pipeline().event_time(...).deduplicate('id', within='1 hour').then(...)"
    return "say it in a stage of its own: .then(bm.Pipeline().window(bm.GlobalWindow()).trigger(Always()).accumulating().accumulate(...))"
