"""The FROM clause: what the rows are called."""

from __future__ import annotations

import attrs

from beamish.statement.clauses import Clauses
from beamish.statement.cursor import Cursor
from beamish.statement.text import Text

_RULE = "write FROM name or FROM name AS other: one source, whose rows are the DataFrame's; join in Spark first"


@attrs.frozen
class Rows:
    """What the rows are called.

    Attributes:
        name: as FROM says, without the database.
        alias: the name by which columns may say whose they are; the same where AS says no other.
    """

    name: str
    alias: str


def rows_of(text: Text, clauses: Clauses) -> Rows:
    """What FROM says.

    Raises:
        SqlError: it is not one name, with or without an alias.
    """
    cursor = Cursor(text, clauses.begins["FROM"], clauses.words["FROM"], _RULE)
    name = cursor.name("the name of the source")
    while cursor.take("."):
        name = cursor.name("a name")
    if cursor.take("AS") or (cursor.next is not None and cursor.next.is_name):
        alias = cursor.name("a name after AS")
        cursor.end()
        return Rows(name, alias)
    cursor.end()
    return Rows(name, name)
