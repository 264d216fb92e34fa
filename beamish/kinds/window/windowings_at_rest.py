"""Several windowings at rest: each is read under its name as one without a name is, and its rows have the column ``windowing``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs
import pyarrow as pa

from beamish.contract.at_rest import Answer, Asked, Keeps, read_key
from beamish.contract.store import Store
from beamish.kinds.window.at_rest import Rows, Windows, answer_of
from beamish.kinds.window.read_identity import ReadPlan
from beamish.kinds.window.stored_windows import NotedWindows, noted_windows
from beamish.pane import DropReason
from beamish.tables.prefixed import StoreUnder, under
from beamish.tables.stored_tables import WINDOWINGS
from beamish.windows.windowings import WINDOWING

Plans = Mapping[str | None, ReadPlan]
"""The plans of a stage, by the name of the windowing; of one without a name None."""
_ONCE_PER_ROW = (DropReason.NULL_EVENT_TIME, DropReason.EVENT_TIME_OUT_OF_RANGE)
_FIELD = pa.field(WINDOWING, pa.string())


def key_schema(plans: Plans) -> pa.Schema:
    """By which columns windows are told apart: the keys, and under several windowings ``windowing``."""
    keys = next((of.plan.key_schema for of in plans.values()), pa.schema([]))
    return keys if None in plans or not plans else keys.append(_FIELD)


def with_windowing(rows: pa.Table, place: int, name: str) -> pa.Table:
    """Rows with the name of their windowing at this place."""
    return rows.add_column(place, _FIELD, pa.array([name] * rows.num_rows, pa.string()))


def answer_of_each(plans: Plans, asked: Asked, *, segment: str | None = None, **more: Any) -> Answer:
    """The answer of a stage with these plans to a question about windows or their rows.

    Args:
        plans: of the stage.
        asked: the question.
        segment: the name of the only entry that is read; None: all of the span.
        more: see ``answer_of``.

    Raises:
        OptionError, PipelineError: see ``AtRest.answer``.
    """
    if None in plans:
        return answer_of(plans[None], asked, segment=segment, **more)
    keys = key_schema(plans)
    key = read_key(asked.what, asked.key, keys)
    meant, asked = key.pop(WINDOWING, None), attrs.evolve(asked, key=key)
    each = {
        str(name): answer_of(of, asked, segment=segment and segment.removeprefix(f"{name}/"), **more)
        for name, of in plans.items()
    }
    return _OfEach(each, meant, len(keys) - 1 if asked.what is Keeps.ROWS else min(len(keys) - 1, 1))


@attrs.define(eq=False)
class _OfEach(Answer):
    """An answer from each of several windowings.

    Attributes:
        each: by the name of the windowing.
        meant: the name of the only one that is meant; None: all are.
        place: where the column ``windowing`` is.
    """

    each: Mapping[str, Windows | Rows]
    meant: str | None
    place: int

    def __attrs_post_init__(self) -> None:
        first = next(iter(self.each.values()))
        self.schema, self.keys, self.shard = (
            first.schema.insert(self.place, _FIELD),
            (*first.keys, WINDOWING),
            first.shard,
        )

    @property
    def plans(self) -> Plans:
        """The plans of the stage."""
        return {name: one.of_plan for name, one in self.each.items()}

    def _meant(self, store: Store) -> Iterator[tuple[str, Windows | Rows, Store]]:
        for name, one in self.each.items():
            if self.meant in (None, name):
                yield name, one, StoreUnder(name, store)

    def needs(self, notes: Store) -> Iterator[str]:
        return (f"{name}/{entry}" for name, one, own in self._meant(notes) for entry in one.needs(own))

    def read(self, store: Store) -> pa.Table:
        tables = [with_windowing(one.read(own), self.place, name) for name, one, own in self._meant(store)]
        return pa.concat_tables([self.schema.empty_table(), *tables])


def noted_windowings(
    notes: Mapping[int, Store], about: Mapping[str, Any], known: Plans
) -> Mapping[str | None, NotedWindows]:
    """What the notes of a stage's shards say of each windowing; see ``noted_windows``."""
    names = next((json.loads(one) for store in notes.values() if (one := store.get(WINDOWINGS)) is not None), [None])
    return {
        name: _noted_under(
            name,
            noted_windows({shard: under(name, store) for shard, store in notes.items()}, about, known.get(name)),
        )
        for name in names
    }


def _noted_under(name: str | None, noted: NotedWindows) -> NotedWindows:
    """The same with the names of entries as they are among those of all."""
    segments = [one if name is None else attrs.evolve(one, entry=f"{name}/{one.entry}") for one in noted.segments]
    return attrs.evolve(noted, segments=segments)


def dropped_of_windowings(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The counts of several windowings over the same rows as one: by (row, window), and by row where there is none.

    Each windowing counts every row that it drops for its event time; the one that was there longest counted all.
    """
    total: dict[str, int] = {}
    for count in counts:
        for reason, rows in count.items():
            so_far = total.get(reason, 0)
            total[reason] = max(so_far, rows) if reason in _ONCE_PER_ROW else so_far + rows
    return total
