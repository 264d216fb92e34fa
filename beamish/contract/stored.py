"""Stored state: the store of a shard, the tables and metadata that an operator declares, and the input schemas stored with them.

Declared state: the keyed tables and the metadata of an operator's shards. An operator that declares them (``Operator.tables``,
``Operator.notes``) can be rescaled (rescale.py).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import attrs
import pyarrow as pa

from beamish.contract.relation import Relation
from beamish.errors import StateError
from beamish.kernels.buffers import Ints
from beamish.kernels.type_names import widens

RUNNER, ABOUT, REPORTS = "spark", "about", "reports"
"""Entries for the runner's metadata of a shard, for the stage's description, and for watermark reports if stages have watermarks other than the query's."""


class Store(Protocol):
    """A dict in a test, Spark's state store on Spark."""

    def get(self, name: str) -> bytes | None: ...
    def put(self, name: str, value: bytes) -> None: ...
    def remove(self, name: str) -> None: ...


class DictStore(dict[str, bytes]):
    """A store in memory."""

    def put(self, name: str, value: bytes) -> None:
        self[name] = value

    def remove(self, name: str) -> None:
        self.pop(name, None)


INDEX = "index"
"""The entry of a table's index."""


@attrs.frozen(eq=False)
class Layout:
    """The entries and the index of a table in a shard's store.

    Attributes:
        name: prefix of its entries: ``name/s1``; empty: ``s1``.
        columns: additional columns of the index.
        rows: the index column with the number of rows.
        companion: the letter of companion entries, and the index column that flags them; None: rows have no companions.
        later: defaults of index columns that earlier versions did not write.
        has_metadata: whether the index is written even without segments, for its metadata.
        in_row_order: whether segments are indexed in the order of their first rows in memory, not by number.
        read: gives the metadata of an index as this version has it; raises StateError if it cannot read the format.
    """

    name: str
    columns: tuple[str, ...] = ()
    rows: str = "rows"
    companion: tuple[str, str] | None = None
    later: Mapping[str, int] = {}
    has_metadata: bool = False
    in_row_order: bool = False
    read: Callable[[dict[str, Any]], dict[str, Any]] = lambda about: about

    @property
    def index(self) -> tuple[str, ...]:
        """The columns of the index."""
        return ("segment", self.rows, *self.columns, *(self.companion or ())[1:])

    def entry(self, name: str | int, letter: str = "s") -> str:
        """The name of an entry in the store, or of that of a segment."""
        own = name if isinstance(name, str) else f"{letter}{name}"
        return f"{self.name}/{own}" if self.name else own

    def owns(self, names: Iterable[str]) -> set[str]:
        """The entries among these names that belong to the table."""
        own = re.compile(re.escape(self.entry("")) + rf"({INDEX}|[a-z]-?\d+)")
        return set(filter(own.fullmatch, names))


class Segments(Protocol):
    """The stored segments of a table in a shard (tables/segments.py).

    Attributes:
        about: the metadata of the index, as JSON.
        index: the index's columns.
    """

    about: dict[str, Any]
    index: dict[str, Ints]

    def read(self, number: int) -> pa.Table:
        """The rows of a segment."""
        ...

    def read_companions(self, number: int) -> pa.Table | None:
        """The companions of a segment's rows; None if empty."""
        ...


@attrs.frozen(eq=False)
class KeyedTable:
    """A table partitioned by key: each shard stores the rows of its keys.

    Attributes:
        layout: its entries in a shard's store.
        key: the stored columns that rows are partitioned by, with the types that are hashed; empty: a single shard.
        restore: ``restore(store, parts)`` writes rows of earlier shards into the store of a new one.
    """

    layout: Layout
    key: pa.Schema
    restore: Callable[[Store, Sequence[Segments]], None]


@attrs.frozen(eq=False)
class Note:
    """The metadata of a shard, as JSON, with at least ``clocks`` and ``dropped``.

    Attributes:
        stage: what it says of the stage, given what it said.
        entries: names of the other entries written with it.
        read: returns the metadata in a store; None: absent.
        write: writes it.
        check: raises StateError if the stage, with any number of shards, cannot continue from a store.
        holds: the name of the stage's suppress; None: it has none.
    """

    stage: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    entries: frozenset[str]
    read: Callable[[Store], dict[str, Any] | None]
    write: Callable[[Store, Mapping[str, Any]], None]
    check: Callable[[Store], object]
    holds: str | None = None


TAKES = "takes"
"""The name of the entry, for windows."""
COLUMNS = "columns"
"""The same in a stage's description on Spark, for stages of all kinds; older checkpoints lack it."""


def schema_texts(takes: Sequence[Relation]) -> list[str]:
    """The schemas of inputs, as text."""
    return [base64.b64encode(relation.columns.serialize()).decode() for relation in takes]


def with_schemas(takes: Sequence[Relation], schemas: Sequence[pa.Schema]) -> list[Relation]:
    """Inputs with these schemas (StateError: another number of inputs)."""
    if len(schemas) != len(takes):
        raise StateError(f"the checkpoint's stage has {len(schemas)} inputs, the pipeline's has {len(takes)}")
    return [attrs.evolve(relation, schema=schema) for relation, schema in zip(takes, schemas, strict=True)]


def schemas_in(texts: Sequence[str]) -> list[pa.Schema]:
    """The schemas in texts from ``schema_texts``."""
    return [pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text))) for text in texts]


def widest(noted: Iterable[bytes]) -> list[pa.Schema] | None:
    """The columns of each input as stored by some shards: the widest, if types were widened or columns added between two runs; None: none stored.

    A shard that was not called since still stores the old ones.
    """
    each = [schemas_in(json.loads(one)) for one in dict.fromkeys(noted)]
    return next((now for now in each if all(map(partial(_holds, now), each))), each[0] if each else None)


def _holds(now: Sequence[pa.Schema], then: Sequence[pa.Schema]) -> bool:
    return len(now) == len(then) and all(
        field.name in wide.names
        and (field.type == wide.field(field.name).type or widens(str(field.type), str(wide.field(field.name).type)))
        for narrow, wide in zip(then, now, strict=True)
        for field in narrow
    )


def note_takes(store: Store, takes: Sequence[Relation]) -> None:
    """Store the schemas of inputs."""
    store.put(TAKES, json.dumps(schema_texts(takes)).encode())


def described_columns(stores: Iterable[Store]) -> list[pa.Schema] | None:
    """The schemas of each input in the stage's descriptions; None: none has them."""
    abouts = [json.loads(stored) for store in stores if (stored := store.get(ABOUT)) is not None]
    return widest(json.dumps(about[COLUMNS]).encode() for about in abouts if COLUMNS in about)


def noted_takes(stores: Iterable[Store], takes: Sequence[Relation]) -> list[Relation]:
    """Inputs with the schemas stored by the shards (StateError: the state is older than that)."""
    stores = list(stores)
    schemas = widest(stored for store in stores if (stored := store.get(TAKES)) is not None) or described_columns(
        stores
    )
    if schemas is None:
        raise StateError(
            "the checkpoint was written by a version of beamish that did not store the columns of its input, so its windows cannot "
            "be read without the input: start a new checkpoint"
        )
    return with_schemas(takes, schemas)
