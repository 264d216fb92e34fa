"""The columns that a stage takes, kept with its state: so the state can be read where there are no rows."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence

import attrs
import pyarrow as pa

from beamish.engine.state.store import Store
from beamish.errors import StateError
from beamish.plan.relation import Relation

TAKES = "takes"
"""The name of the entry."""


def schema_texts(takes: Sequence[Relation]) -> list[str]:
    """The schemas of what a stage takes, as text."""
    return [base64.b64encode(relation.columns.serialize()).decode() for relation in takes]


def with_schemas(takes: Sequence[Relation], texts: Sequence[str]) -> list[Relation]:
    """What a stage takes, with the schemas in these texts."""
    return [attrs.evolve(relation, schema=schema) for relation, schema in zip(takes, schemas_in(texts), strict=True)]


def schemas_in(texts: Sequence[str]) -> list[pa.Schema]:
    """The schemas in the texts that ``schema_texts`` gave."""
    return [pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text))) for text in texts]


def note_takes(store: Store, takes: Sequence[Relation]) -> None:
    """Keep the columns of what a stage takes."""
    store.put(TAKES, json.dumps(schema_texts(takes)).encode())


def noted_takes(store: Store, takes: Sequence[Relation]) -> list[Relation]:
    """What a stage takes, with the columns that its state was begun with.

    Raises:
        StateError: the state is older than that.
    """
    stored = store.get(TAKES)
    if stored is None:
        raise StateError(
            "the checkpoint was begun by a version of beamish that did not keep the columns of its input, so its windows cannot "
            "be read without rows: begin a new checkpoint"
        )
    texts = json.loads(stored)
    if len(texts) != len(takes):
        raise StateError(f"the checkpoint is of a stage with {len(texts)} inputs, the pipeline's has {len(takes)}")
    return with_schemas(takes, texts)
