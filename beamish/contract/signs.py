"""Signs of rows: retractions of a stage, deletions of a source of changes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.contract.relation import Relation
from beamish.kernels.reserved import SIGN
from beamish.pane import PaneKind


def signs_of(relation: Relation, rows: pa.Table) -> pa.Array:
    """int8, one per row: -1 for a retraction, else 1."""
    if not relation.retracts:
        return pa.array(np.ones(rows.num_rows, dtype=np.int8))
    if relation.is_signed:
        return rows[SIGN].combine_chunks()
    kind = rows["pane"].combine_chunks().field("kind")
    takes_back = pc.equal(kind, str(PaneKind.RETRACTION)).to_numpy(zero_copy_only=False)
    return pa.array(np.where(takes_back, -1, 1).astype(np.int8))


def sign_column(relation: Relation) -> tuple[str, ...]:
    """The sign column that ``signs_of`` reads of a source, besides the stage's columns; empty if there is none."""
    return (SIGN,) if relation.is_signed else ()
