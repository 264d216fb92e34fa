"""Rows whose nested fields are read like columns (rules/output.md#nested-fields)."""

from __future__ import annotations

from typing import Any


class Fields(dict[str, Any]):
    """The columns of a row; ``get`` also takes the path to a field. The twin's paths have no quoted parts."""

    def get(self, name: Any, default: Any = None) -> Any:
        if name in self or not isinstance(name, str):
            return super().get(name, default)
        value: Any = self
        for part in name.split("."):
            fields = dict(value) if isinstance(value, dict) else {}
            value = next((fields[field] for field in fields if field.lower() == part.lower()), None)
        return default if value is None else value
