"""The schemas of a stage's inputs, stored with its state so that it can be read without the inputs."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from functools import partial

import attrs
import pyarrow as pa

from beamish.contract.relation import Relation
from beamish.contract.store import ABOUT, Store
from beamish.errors import StateError
from beamish.kernels.widening import widens

TAKES = "takes"
"""The name of the entry, for windows."""
COLUMNS = "columns"
"""The same in a stage's description on Spark, for stages of all kinds; older checkpoints lack it."""


def schema_texts(takes: Sequence[Relation]) -> list[str]:
    """The schemas of inputs, as text."""
    return [base64.b64encode(relation.columns.serialize()).decode() for relation in takes]


def with_schemas(takes: Sequence[Relation], schemas: Sequence[pa.Schema]) -> list[Relation]:
    """Inputs with these schemas.

    Raises:
        StateError: another number of inputs.
    """
    if len(schemas) != len(takes):
        raise StateError(f"the checkpoint is of a stage with {len(schemas)} inputs, the pipeline's has {len(takes)}")
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
    """Inputs with the schemas stored by the shards.

    Raises:
        StateError: the state is older than that.
    """
    stores = list(stores)
    schemas = widest(stored for store in stores if (stored := store.get(TAKES)) is not None) or described_columns(
        stores
    )
    if schemas is None:
        raise StateError(
            "the checkpoint was begun by a version of beamish that did not store the columns of its input, so its windows cannot be read without input: begin a new checkpoint"
        )
    return with_schemas(takes, schemas)
