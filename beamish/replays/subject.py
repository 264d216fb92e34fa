"""The subject of a replay: a pipeline or a query of ``bm.sql``, and the initial rows of its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from beamish.addresses import printable
from beamish.errors import OptionError, PipelineError
from beamish.flow import BoundFlow, Flow
from beamish.pane import Pane
from beamish.pipeline import Pipeline
from beamish.replays.masking import Masks
from beamish.replays.needed import Where, read_key, rows_needed, typed_key
from beamish.script import Event, Row, script_rows
from beamish.statement.query import Query
from beamish.testing import TestStream

Initial = Mapping[str | None, Sequence[Row]]
"""The initial rows of tables, by the names of their inputs."""


@attrs.frozen
class Subject:
    """A pipeline or a query.

    Attributes:
        what: the pipeline or query.
        initial: the rows of its tables before the first step.
    """

    what: Any
    initial: Initial = attrs.Factory(dict)

    @classmethod
    def of(cls, what: Any) -> Subject:
        """A pipeline or query, without initial rows (PipelineError: it is neither)."""
        if isinstance(what, Query) or isinstance(getattr(what, "flow", None), Flow):
            return cls(what)
        raise PipelineError(
            f"replay(spark, checkpoint, {printable(what)}): must be the query's pipeline, such as bm.Pipeline()... or bm.sql(...)"
        )

    @property
    def flow(self) -> Flow:
        """That of the pipeline; of a query between WHERE and HAVING."""
        pipeline: Pipeline = self.what.pipeline if isinstance(self.what, Query) else self.what
        return pipeline.flow.completed

    @property
    def statement(self) -> Any:
        """The compiled query; None: a pipeline."""
        if not isinstance(self.what, Query):
            return None
        script: Any = self.what.scripted(TestStream())
        return script.statement

    @property
    def keys(self) -> Mapping[str, str] | None:
        """The key columns of the output, and what the pipeline calls them; None: those of a join, which depend on its rows."""
        if self.statement is None:
            return {str(name): str(name) for name in self.flow.gives.keys}
        if self.statement.joined is not None:
            return None
        return {item.expression.name: item.key for item in self.statement.grouped if item.key is not None}

    def read(self, key: Any) -> dict[str, Any]:
        """A key as given: a dict, or the value of the only key column; None: all keys (OptionError: no such key column)."""
        if self.keys is not None:
            return read_key(list(self.keys), key)
        if key is not None and not isinstance(key, Mapping):
            raise OptionError(f"replay(key={key!r}): name the columns: a dict with some of the SELECT list's keys")
        return dict(key or {})

    def inner_key(self, key: Mapping[str, Any]) -> dict[str, Any]:
        """A key under the names of the pipeline; those that it lacks are left out."""
        return {inner: key[name] for name, inner in (self.keys or {}).items() if name in key}

    def keys_after(self, events: Sequence[Event]) -> list[str]:
        """The key columns of the output of a script."""
        return list(self.keys) if self.keys is not None else self.what.scripted(TestStream(tuple(events))).keys

    def typed(self, key: Mapping[str, Any], events: Sequence[Event]) -> dict[str, Any]:
        """A key whose texts are of the types of its columns (OptionError: a text is not of that type, or no such key column)."""
        names = self.keys_after(events)
        read_key(names, dict(key))
        inner = typed_key(self.inner_key(key), self.bound(events).operator.gives.schema)
        return {name: inner.get((self.keys or {}).get(name, name), value) for name, value in key.items()}

    def masked(self, masks: Masks) -> Subject:
        """With pseudonyms in the initial rows."""
        return attrs.evolve(
            self, initial={name: [masks.row(row) for row in rows] for name, rows in self.initial.items()}
        )

    def needed(self, key: Mapping[str, Any]) -> Where:
        """Which rows of each source decide the output of a key; without columns that a query computes."""
        found = rows_needed(self.flow, self.inner_key(key))
        for one in () if self.statement is None else self.statement.inputs:
            name = self._input(one)
            found[name] = {column: value for column, value in found[name].items() if column not in one.added}
        return found

    @property
    def named(self) -> dict[str | None, set[str]]:
        """The columns of each input that a query names before its pipeline."""
        if self.statement is None:
            return {}
        from beamish.statement.grammar.expressions import COLUMN

        found: dict[str | None, set[str]] = {}
        for one in self.statement.inputs:
            trees = [
                expression.node for expression in (one.where, *one.columns, *one.computed) if expression is not None
            ]
            paths = [node.value for tree in trees for node in tree.walk() if node.op == COLUMN]
            found[self._input(one)] = {path[0] for path in paths}
        return found

    def _input(self, one: Any) -> str | None:
        """The name of an input of a query in its pipeline."""
        return one.rows.name if self.statement.joined is not None or len(self.flow.sources) > 1 else None

    def events(self, events: Sequence[Event]) -> Sequence[Event]:
        """The script of the pipeline: of a query that after WHERE."""
        return self.what.scripted(TestStream(tuple(events))).events if self.statement is not None else events

    def trace(self, events: Sequence[Event]) -> list[tuple[Event, list[Pane]]]:
        """Each event of a script with the output."""
        return TestStream(tuple(events)).trace(self.what, initial=self.initial or None)

    def bound(self, events: Sequence[Event]) -> BoundFlow:
        """The pipeline, bound to the columns of a script."""
        return self.flow.bind(script_rows(self.flow, self.events(events), self.initial or None).schemas, shards=1)

    @property
    def listing(self) -> Subject:
        """The same with its dropped rows, if it can list them; a query emits them or not."""
        if self.statement is not None:
            return self
        try:
            listing = self.what.with_dropped()
            listing.flow.completed.check()
        except PipelineError:
            return self
        return attrs.evolve(self, what=listing)

    @property
    def parts(self) -> list[Subject]:
        """Its stages, each with those before it and its dropped rows; of a query the last one."""
        if self.statement is not None:
            return [attrs.evolve(self, what=attrs.evolve(self.what, with_dropped=True))]
        found = []
        for below in self.flow.flows:
            names = {source.name for source in below.sources}
            initial = {name: rows for name, rows in self.initial.items() if name in names}
            found.append(Subject(Pipeline(below.listing_dropped), initial))
        return found

    def tables(self, given: Any) -> Mapping[str | None, Any]:
        """Initial rows as given, by the names of inputs (OptionError, PipelineError: it has no such table)."""
        if given is not None and self.statement is not None:
            raise OptionError("replay(initial=...): a query of bm.sql has no initial rows; leave it out")
        return self.flow.initial(given)
