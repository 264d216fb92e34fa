"""What is known of rows of output as changes of a table: it goes with them as metadata of the column ``pane``.

So a DataFrame of panes can be read as a changelog by whoever has it, also when it was written to a table in between, where
that keeps the metadata of columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from beamish.contract.relation import Follows, Relation
from beamish.contract.schemas import PANE

FIELDS = (*(field.name for field in PANE if field.name not in ("kind", "change")), "timestamp")
"""What of a pane may be asked for beside its columns."""
METADATA = "beamish"
"""The name of the entry."""


@attrs.frozen
class Ledger:
    """What is known of rows of output (docs/rules/panes.md#pane-change).

    Attributes:
        keys: the key columns.
        slot: the columns that, with the window, say what a row is a row of; None: it is one of a bag.
        follows: how rows of a slot follow each other.
        windowed: whether windows have bounds; not so where all of time is one, or where rows are in none.
        merging: whether windows merge.
    """

    keys: tuple[str, ...]
    slot: tuple[str, ...] | None
    follows: Follows = attrs.field(converter=Follows)
    windowed: bool
    merging: bool

    @classmethod
    def of(cls, gives: Relation, *, final: bool = False) -> Ledger:
        """Of what a stage gives; ``final``: as a batch, where each row comes once."""
        window = gives.window
        return cls(
            tuple(map(str, gives.keys)),
            None if gives.slot is None else tuple(map(str, gives.slot)),
            Follows.ONCE if final else gives.follows,
            window is not None and not window.is_all_of_time,
            window is not None and window.merging,
        )

    @classmethod
    def read(cls, metadata: Mapping[str, Any]) -> Ledger | None:
        """From the metadata of a column; None: it has none."""
        about = metadata.get(METADATA)
        if about is None:
            return None
        slot = about["slot"]
        return cls(
            tuple(about["keys"]),
            None if slot is None else tuple(slot),
            about["follows"],
            about["windowed"],
            about["merging"],
        )

    def renamed(self, names: Mapping[str, str]) -> Ledger:
        """Of the same rows with columns by other names; one that has none is no longer there."""
        keys = tuple(names[key] for key in self.keys if key in names)
        slot = (
            None if self.slot is None or not set(self.slot) <= names.keys() else tuple(names[key] for key in self.slot)
        )
        return attrs.evolve(self, keys=keys, slot=slot)

    @property
    def metadata(self) -> dict[str, Any]:
        """As metadata of a column."""
        return {METADATA: attrs.asdict(self)}
