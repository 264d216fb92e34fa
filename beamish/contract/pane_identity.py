"""The relational meaning of output rows, as metadata of the column ``pane``.

So any DataFrame of panes can be read as a changelog, also after it was written to a table that keeps column metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from beamish.contract.relation import Follows, Relation
from beamish.contract.schemas import PANE

FIELDS = (*(field.name for field in PANE if field.name not in ("kind", "change")), "timestamp")
"""Additional columns that can be derived from a pane."""
METADATA = "beamish"
"""The name of the entry."""


@attrs.frozen
class Ledger:
    """The relational meaning of output rows (docs/rules/panes.md#pane-change).

    Attributes:
        keys: the key columns.
        slot: the columns that, with the window, identify a row; None: bag semantics.
        follows: how rows of a slot follow each other.
        windowed: whether windows have bounds; not for a global window or rows without windows.
        merging: whether windows merge.
    """

    keys: tuple[str, ...]
    slot: tuple[str, ...] | None
    follows: Follows = attrs.field(converter=Follows)
    windowed: bool
    merging: bool

    @classmethod
    def of(cls, gives: Relation, *, final: bool = False) -> Ledger:
        """For the output of a stage; ``final``: in a batch, where each row is final."""
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
        """From the metadata of a column; None: absent."""
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
        """For renamed columns; columns without a new name are gone."""
        keys = tuple(names[key] for key in self.keys if key in names)
        slot = (
            None if self.slot is None or not set(self.slot) <= names.keys() else tuple(names[key] for key in self.slot)
        )
        return attrs.evolve(self, keys=keys, slot=slot)

    @property
    def metadata(self) -> dict[str, Any]:
        """As metadata of a column."""
        return {METADATA: attrs.asdict(self)}
