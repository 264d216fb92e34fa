"""Upserting batches into a table: the columns beside its data, MERGE INTO, and the mark of the last batch, which decides which may follow."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from beamish.errors import SinkError

SEQUENCE, DELETED = "_sequence", "_deleted"
"""Sequence number of a row's last change (bigint); whether the row is deleted (boolean)."""


@attrs.frozen
class MergeInto:
    """Statements that merge the net change of a batch into a table.

    Attributes:
        table: the table, quoted.
        source: the net change, quoted: one row per identity.
        data: the columns without ``_deleted``.
        identity: the columns that identify a row.
        quote: quotes a name.
        same: the null-safe equality operator.
        keep_deleted: whether deleted rows stay, marked by ``_deleted``.
    """

    table: str
    source: str
    data: Sequence[str]
    identity: Sequence[str]
    quote: Callable[[str], str]
    same: str
    keep_deleted: bool

    def update(self) -> str:
        """The statement that merges the net change."""
        return self._update(f"s.{self.quote(SEQUENCE)} > t.{self.quote(SEQUENCE)}")

    def repeat(self) -> str:
        """The statement that merges the net change of a replayed batch: its rows replace those of the first run."""
        return self._update("TRUE")

    def _update(self, newer: str) -> str:
        deletes = "" if self.keep_deleted else f" WHEN MATCHED AND {newer} AND s.{self.quote(DELETED)} THEN DELETE"
        inserts = "" if self.keep_deleted else f" AND NOT s.{self.quote(DELETED)}"
        return self._merge(self.source, f"{deletes} WHEN MATCHED AND {newer}", inserts)

    def replace(self) -> str:
        """The statement that makes the table equal to the source."""
        live = f"(SELECT * FROM {self.source} WHERE NOT {self.quote(DELETED)})"
        merged = self._merge(self.source if self.keep_deleted else live, " WHEN MATCHED", "")
        return f"{merged} WHEN NOT MATCHED BY SOURCE THEN DELETE"

    def _merge(self, source: str, matched: str, not_matched: str) -> str:
        quote, columns = self.quote, [*self.data, *([DELETED] if self.keep_deleted else [])]
        found = " AND ".join(f"t.{quote(name)} {self.same} s.{quote(name)}" for name in self.identity)
        sets = ", ".join(f"{quote(name)} = s.{quote(name)}" for name in columns if name not in self.identity)
        values = ", ".join(f"s.{quote(name)}" for name in columns)
        return (
            f"MERGE INTO {self.table} AS t USING {source} AS s ON {found}{matched} THEN UPDATE SET {sets}"
            f" WHEN NOT MATCHED{not_matched} THEN INSERT ({', '.join(map(quote, columns))}) VALUES ({values})"
        )


@attrs.frozen
class Contents:
    """Evidence of a table's rows, which a batch keeps up to date without reading the table.

    Attributes:
        rows: their number.
        sequences: the sum of their sequences, each modulo ``MODULUS``.
    """

    rows: int
    sequences: int

    def plus(self, change: Contents) -> Contents:
        """The contents after a change."""
        return Contents(self.rows + change.rows, self.sequences + change.sequences)


MODULUS = 1_000_003
"""A prime: sums of sequences modulo it do not overflow."""


REBUILT = "rebuilt"
"""In place of a digest of rows: the table was rebuilt from all panes."""


@attrs.frozen
class Mark:
    """The last batch written to a table.

    Attributes:
        query: the id of its query; empty: unknown.
        batch: its number; -1: unknown.
        entry: a digest of its entry in the offset log; empty: unknown.
        rows: a digest of the identities that it changes, or ``REBUILT``; empty: an earlier version wrote the mark.
        previous: the number of the batch before it, where ``bm.migrate`` skipped some; None: one less.
        contents: the table's rows after it; None: unknown.
    """

    query: str
    batch: int
    entry: str = ""
    rows: str = ""
    previous: int | None = None
    contents: Contents | None = None

    def is_of(self, other: Mark) -> bool:
        """Whether both may be of the same query."""
        return not self.query or not other.query or self.query == other.query

    def skips(self, last: Mark) -> bool:
        """Whether batches between another one and this are missing; earlier versions did not mark every batch."""
        previous = self.batch - 1 if self.previous is None else self.previous
        return bool(last.rows) and last.batch < previous

    def has_other_entry(self, other: Mark) -> bool:
        """Whether these are batches of the same number with different offsets."""
        return self.batch == other.batch and bool(self.entry and other.entry) and self.entry != other.entry

    def has_other_rows(self, other: Mark) -> bool:
        """Whether these are batches of the same number that change different rows."""
        known = REBUILT not in {self.rows, other.rows} and bool(self.rows and other.rows)
        return self.batch == other.batch and known and self.rows != other.rows


@attrs.frozen
class Marked:
    """A table that accepts batches.

    Attributes:
        table: its name, for messages.
        last: the mark of the last batch, or None.
        exists: whether the table exists.
        has_rows: whether it has rows.
        drop: how to remove the table and its mark: "run ...".
        contents: its rows now; None: not counted.
        lost: how another writer removed rows after the last batch; empty: unknown, or not at all.
        accept: the statement that accepts the table as it is.
        accept_keys: the statement that accepts its keys as they are, if a version wrote it that stored some in another form.
    """

    table: str
    last: Mark | None
    exists: bool
    has_rows: bool
    drop: str
    contents: Contents | None = None
    lost: str = ""
    accept: str = ""
    accept_keys: str = ""

    def is_replay(self, mark: Mark) -> bool:
        """Whether the table already has the batch."""
        return self.exists and self.last is not None and self.last.batch == mark.batch

    def check_takes(self, mark: Mark) -> None:
        """Check that a batch may follow the last one.

        Raises:
            SinkError: it belongs to another query, or to one restarted from an empty or an earlier checkpoint; or rows of earlier
                batches are missing.
        """
        if self.last is None:
            self._check_first(mark)
        elif self.exists or (mark.batch > 0 and mark.is_of(self.last)):
            self._check_owner(mark, self.last)
            self._check_next(mark, self.last)
            self._check_contents(self.last)

    def _check_first(self, mark: Mark) -> None:
        if mark.batch > 0:
            raise SinkError(
                f"table {self.table}: no earlier batch is recorded for it, and batch {mark.batch} has only the changes since the batch before. The table or its database was deleted, or the sink was added to a query that had run, or was not "
                f"called for the first batches (call it for each, also for one without rows). {self._rebuild()}"
            )
        if self.has_rows:
            raise SinkError(
                f"table {self.table}: it has rows of an unknown query: changes of two queries cannot be ordered. Choose "
                "another table, or delete its rows"
            )

    def _check_owner(self, mark: Mark, last: Mark) -> None:
        if not mark.is_of(last):
            raise SinkError(
                f"table {self.table}: it belongs to the query {last.query} (batch {last.batch}), this is {mark.query}: changes of two "
                f"queries, or of two checkpoints, cannot be ordered. Give each query a table of its own; {self._begin_anew}"
            )
        if not self.exists:
            raise SinkError(
                f"table {self.table}: it was deleted, though batch {last.batch} of this query was written to it, and batch {mark.batch} "
                f"has only the changes since. {self._rebuild()}"
            )

    def _check_next(self, mark: Mark, last: Mark) -> None:
        if mark.batch < last.batch:
            raise SinkError(
                f"table {self.table}: batch {mark.batch} comes after batch {last.batch}: two queries write it, or the checkpoint was "
                f"restored to an earlier batch or is empty, so the newer change is unknown; {self._begin_anew}"
            )
        if mark.skips(last):
            raise SinkError(
                f"table {self.table}: batch {mark.batch} comes after batch {last.batch}, so the changes of batches between them are "
                "missing: the table was restored from a backup older than the checkpoint, or the sink was not called for a batch (call "
                f"it for each, also for one without rows). {self._rebuild('Restore table and checkpoint of the same time')}"
            )
        if mark.has_other_entry(last):
            raise SinkError(
                f"table {self.table}: it holds batch {mark.batch} with other rows: the checkpoint was restored to an earlier batch, or "
                f"two queries run from copies of it, so changes of the first batch {mark.batch} would stay. Continue from the newer checkpoint; {self._begin_anew}"
            )
        if mark.has_other_rows(last):
            raise SinkError(
                f"table {self.table}: batch {mark.batch} was written before and now changes other rows, though its offsets are the same: "
                "a source file was deleted or rewritten, or a table that the query joins has changed, so changes of its first run would "
                f"stay. {self._rebuild('Restore what was changed')}"
            )

    def _check_contents(self, last: Mark) -> None:
        if lost := self.lost or self._difference(last.contents):
            raise SinkError(
                f"table {self.table}: after batch {last.batch} {lost}, and later batches have only the changes since. {self._rebuild()}; or, if that was on purpose, accept the table as it is: {self.accept}"
            )

    def _difference(self, left: Contents | None) -> str:
        now = self.contents
        if left is None or left == now or (now is None and (self.has_rows or not left.rows)):
            return ""
        found = f"{now.rows if now else 0} rows"
        same = ", not all of them the same" if now and now.rows == left.rows else ""
        return (
            f"it had {left.rows} rows, and it has {found}{same}: another writer deleted or added rows, or it was emptied, created again "
            "or restored"
        )

    @property
    def _begin_anew(self) -> str:
        return (
            f"to fill the table again from the source, stop the query, {self.drop}; then start from an empty checkpoint"
        )

    def _rebuild(self, restore: str = "Restore what was deleted") -> str:
        return (
            f"{restore}; or, from a stored table of all panes, run sink.rebuild(spark.table(...), checkpoint=...) and "
            f"restart; or, {self._begin_anew}"
        )
