"""Names of tables and columns as SQL reads them."""

from __future__ import annotations

import re

import attrs

from beamish.addresses import printable
from beamish.errors import OptionError

_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


def quoted(name: str) -> str:
    """A name, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


@attrs.frozen
class TableName:
    """A table's name, and that of its schema if it was said."""

    schema: str | None
    name: str

    @classmethod
    def read(cls, words: object) -> TableName:
        """Read a name as SQL has it: ``hourly``, ``stats.hourly``, ``stats."by.hour"``.

        Raises:
            OptionError: it is none.
        """
        parts, at = [], 0
        while isinstance(words, str) and (found := _PART.match(words, at)):
            parts.append(found[1].replace('""', '"') if found[1] else found[2].strip())
            at = found.end()
            if at == len(words) or words[at] != ".":
                break
            at += 1
        if not isinstance(words, str) or at != len(words) or len(parts) not in (1, 2) or "" in parts:
            raise OptionError(
                f"table={printable(words)}: must be a name such as 'hourly' or 'stats.hourly'; a dot within a name needs quotes: "
                "'stats.\"by.hour\"'"
            )
        return cls(parts[0] if len(parts) == 2 else None, parts[-1])

    def beside(self, name: str) -> TableName:
        """A table in the same schema."""
        return TableName(self.schema, name)

    @property
    def sql(self) -> str:
        """As SQL reads it."""
        return ".".join(quoted(part) for part in (self.schema, self.name) if part is not None)

    def __str__(self) -> str:
        return ".".join(filter(None, (self.schema, self.name)))
