"""The stored row of each key, its image, or the delete that removed it; in segments by a hash of the key.

columns (one entry per key; ``_us``: int64, microseconds since the epoch):
    time_us     the time of the row
    deletes     bool: whether it deletes; its values are then null
    due_us      the watermark at which it expires; NEVER_US: never
cells: the key as ``key.<name>``, the values as ``value.<name>``, and what orders the row as ``sequence``, if that is a column.

A segment has some 16,000 keys: a step reads and writes those of the keys in its bundle.
"""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.stored import Store
from beamish.kernels.buffers import Flags, Ints
from beamish.kernels.codes import factorize_rows
from beamish.kernels.groups import Groups
from beamish.kernels.order import sort_keys, value_keys
from beamish.kinds.upserts.plan import UpsertsPlan
from beamish.tables.buckets import BucketedRecords
from beamish.tables.records import DUE, Records, RecordTable, keyed_layout, record_table
from beamish.triggers.trigger import NEVER_US

NAME = "images"


@attrs.frozen
class ImagePolicy:
    """How a shard's keys are cut into segments; does not affect the output.

    Attributes:
        keys: number of keys in a segment, about.
    """

    keys: int = 16_384


@attrs.frozen(eq=False)
class Images(Records):
    """The rows of keys."""

    COLUMNS: ClassVar[dict[str, tuple[str, Any]]] = {
        "time_us": ("int64", 0),
        "deletes": ("bool", False),
        "due_us": ("int64", NEVER_US),
    }

    @property
    def values(self) -> list[pa.Array]:
        """The value columns."""
        return self.named("value.")

    @property
    def order(self) -> list[Ints]:
        """Sort keys of what orders the rows of a key."""
        if "sequence" in self.cells.schema.names:
            return sort_keys(self.cells["sequence"].combine_chunks())
        return [self["time_us"]]

    @property
    def ties(self) -> list[Ints]:
        """Sort keys of rows of one order: a value before a delete, then the greatest values, then the latest."""
        return [(~self["deletes"]).astype(np.int64), *value_keys(self.values), self["time_us"]]


def no_images(plan: UpsertsPlan) -> Images:
    """An empty table of images."""
    keys = [pa.field(f"key.{field.name}", field.type) for field in plan.key_schema]
    values = [pa.field(f"value.{field.name}", field.type) for field in plan.value_schema]
    order = [] if plan.sequence is None else [pa.field("sequence", plan.sequence.type)]
    return Images.none(pa.schema([*keys, *values, *order]))


def images_table(plan: UpsertsPlan, policy: ImagePolicy) -> RecordTable[ImageTable]:
    """The table of images."""
    none = no_images(plan)
    names = [f"key.{name}" for name in plan.key_schema.names]
    return record_table(keyed_layout(NAME), none, names, lambda store: ImageTable(none, store, policy))


class ImageTable(BucketedRecords[Images]):
    """The loaded images of a shard.

    Args:
        none: an empty table of them.
        store: the shard's.
        policy: how its keys are cut into segments.

    Raises:
        StateError: the index cannot be read.
    """

    def __init__(self, none: Images, store: Store, policy: ImagePolicy) -> None:
        names = [name for name in none.cells.schema.names if name.startswith("key.")]
        super().__init__(store, keyed_layout(NAME), none, names, policy.keys)

    @property
    def next_due_us(self) -> int | None:
        """The least watermark at which an image expires; None: it does not."""
        due = self.segments.index[DUE]
        return min(due[due != NEVER_US].tolist(), default=None)

    def expire(self, watermark_us: int) -> None:
        """Remove the images that expire at a watermark."""
        self.load_where(_is_due(self.segments.index[DUE], watermark_us))
        self.remove(np.flatnonzero(self.alive & _is_due(self.records["due_us"], watermark_us)))

    def stored_of(self, arrived: Images) -> tuple[Ints, Groups]:
        """The images of the keys of rows, as indices in memory; and of these images, then the rows, groups of equal keys."""
        self.load_keys(arrived.cells.select(self._keys))
        known = np.flatnonzero(self.alive)
        both = [
            pa.chunked_array([one, other])
            for one, other in zip(self.records.take(known).keys, arrived.keys, strict=True)
        ]
        of = factorize_rows(both, len(known) + len(arrived)).of
        own = np.isin(of[: len(known)], of[len(known) :])
        code = np.unique(np.concatenate([of[: len(known)][own], of[len(known) :]]), return_inverse=True)[1]
        return known[own], Groups(code, int(code.max(initial=-1)) + 1)

    def save(self, watermark_us: int) -> None:
        """Write the changes of the step, but for images that expire at the watermark."""
        self.write_buckets(
            lambda images: ~_is_due(images["due_us"], watermark_us),
            lambda columns, runs: {DUE: runs.least(columns["due_us"])},
        )


def _is_due(due_us: Ints, watermark_us: int) -> Flags:
    """Whether the watermark has reached these times: bool; never NEVER_US."""
    due: Flags = (due_us <= watermark_us) & (due_us != NEVER_US)
    return due
