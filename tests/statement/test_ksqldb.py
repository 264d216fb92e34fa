"""The table of ksqlDB's clauses and functions (docs/sql.md#ksqldb-all) is that of the code."""

from beamish.statement.grammar.names import KSQLDB
from tools import sql_table


def test_the_page_has_the_table_of_the_code():
    assert sql_table.TABLE.search(sql_table.PAGE.read_text("utf-8"))[0] == sql_table.table(), (
        "python tools/sql_table.py"
    )


def test_every_function_is_in_one_row():
    named = [name for row, _ in sql_table.functions() for name in row.strip("`").split()]
    assert sorted(named) == sorted(KSQLDB)


def test_refused_clauses_have_reasons_of_their_own():
    rows = dict(sql_table.clauses())
    assert len(rows) == len(set(rows.values())) + 1, "two rows of what is supported: clauses and expressions"
    assert not [row for row, said in rows.items() if "expected ',' or ')'" in said]
