"""The rows that decide the panes of a key: which columns of which inputs select them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from beamish.errors import OptionError
from beamish.flow import Flow, Panes
from beamish.kernels.key_sets import GROUPING_ID

Where = dict[str | None, dict[str, Any]]


def read_key(names: Sequence[str], key: Any) -> dict[str, Any]:
    """The values of key columns of the output.

    Args:
        names: the key columns.
        key: as given: a dict, or the value of the only key column; None: all keys.

    Raises:
        OptionError: no such key column.
    """
    if key is None:
        return {}
    if not isinstance(key, Mapping):
        if len(names) != 1:
            raise OptionError(
                f"replay(key={key!r}): name the columns: a dict with some of {', '.join(map(repr, names)) or 'none'}"
            )
        return {names[0]: key}
    for name in key:
        if name not in names:
            raise OptionError(
                f"replay(key={dict(key)!r}): {name!r} is not a key column of the output; they are {list(names)}"
            )
    return dict(key)


def rows_needed(flow: Flow, key: Mapping[str, Any]) -> Where:
    """For each source the columns of a key and their values: all rows with these decide the key's panes.

    A stage that is keyed by a value of the stage before needs all rows of that stage.
    """
    found: Where = {}
    gives = [str(name) for name in flow.gives.keys]
    for taken in flow.inputs:
        keys: Sequence[Any] = taken.relation.keys
        wanted = {
            keys[place]: value
            for place, value in ((gives.index(name), value) for name, value in key.items())
            if place < len(keys) and isinstance(keys[place], str)
        }
        if isinstance(taken, Panes):
            own = [str(name) for name in taken.flow.gives.keys]
            found |= rows_needed(taken.flow, {name: value for name, value in wanted.items() if name in own})
            continue
        totals = {*taken.key_sets.columns, GROUPING_ID} if taken.key_sets is not None else set()
        is_plain = taken.form is None
        found[taken.name] = {name: value for name, value in wanted.items() if is_plain and name not in totals}
    return found


def typed_key(key: Mapping[str, Any], schema: pa.Schema) -> dict[str, Any]:
    """A key whose texts are of the columns' types, as a command line gives them.

    Raises:
        OptionError: a text is not of that type.
    """
    found = dict(key)
    for name, value in key.items():
        place = schema.get_field_index(name)
        if isinstance(value, str) and place >= 0 and not pa.types.is_string(schema.field(place).type):
            try:
                found[name] = pa.array([value]).cast(schema.field(place).type)[0].as_py()
            except pa.ArrowException:
                raise OptionError(f"replay(key): {name}={value!r}: the column is {schema.field(place).type}") from None
    return found
