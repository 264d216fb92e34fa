"""The clauses of a statement: which there are, in which order, and what is not among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from beamish.statement.text import Text
from beamish.statement.tokens import Token, begins_clause

_CLAUSES = ("SELECT", "FROM", "WINDOW", "WHERE", "GROUP_BY", "HAVING", "EMIT")
"""In the order in which they stand."""
ORDER = "[CREATE TABLE name AS] SELECT ... FROM ... [WINDOW ...] [WHERE ...] GROUP BY ... [HAVING ...] [EMIT ...]"

_NEEDED: Mapping[str, str] = {
    "FROM": "FROM names the source, whose rows are the DataFrame's",
    "GROUP_BY": (
        "GROUP BY names the columns that make a group; for one group of all rows say SELECT 'all' AS everything, COUNT(*) AS n "
        "... GROUP BY 'all'"
    ),
}
_FIRST = "join or combine the DataFrames in Spark first, and give bm.sql the result: bm.sql(...).apply(df)"
_REFUSED: Mapping[str, str] = {
    "JOIN": f"JOIN: a statement has one source; {_FIRST}, or use bm.merge for streams that meet in windows",
    "LATERAL": f"LATERAL: a statement has one source; {_FIRST}",
    "UNION": f"UNION: a statement has one source; {_FIRST}",
    "INTERSECT": f"INTERSECT: a statement has one source; {_FIRST}",
    "EXCEPT": f"EXCEPT: a statement has one source; {_FIRST}",
    "WITH": f"WITH: a statement has one source; {_FIRST}",
    "TABLE_SAMPLE": "TABLESAMPLE: sample the DataFrame in Spark first",
    "VALUES": "VALUES: the rows are the DataFrame's; give it to .apply(df)",
    "PIVOT": "PIVOT: pivot what comes out, in Spark",
    "ORDER_BY": "ORDER BY: a stream has no order to come in; order what comes out where it is read",
    "SORT_BY": "SORT BY: a stream has no order to come in; order what comes out where it is read",
    "CLUSTER_BY": "CLUSTER BY: rows are spread by GROUP BY; leave it out",
    "DISTRIBUTE_BY": "DISTRIBUTE BY: rows are spread by GROUP BY; leave it out",
    "LIMIT": "LIMIT: a stream has no first rows; use TOPK(x, n) for the greatest of a group",
    "OFFSET": "OFFSET: a stream has no first rows; use TOPK(x, n) for the greatest of a group",
    "FETCH": "FETCH: a stream has no first rows; use TOPK(x, n) for the greatest of a group",
    "QUALIFY": "QUALIFY: no functions over windows of rows; use HAVING for conditions on aggregates",
    "PARTITION_BY": "PARTITION BY: rows are keyed by GROUP BY; name the expressions there",
    "OVER": "OVER: aggregates are of a group and its window; say WINDOW TUMBLING (...) and GROUP BY",
    "INSERT": "INSERT INTO: writing is Spark's business: bm.sql('SELECT ...').apply(df).writeStream",
    "ROLLUP": "ROLLUP: a statement has one grouping; write one statement for each",
    "CUBE": "CUBE: a statement has one grouping; write one statement for each",
    "GROUPING_SETS": "GROUPING SETS: a statement has one grouping; write one statement for each",
    "FILTER": "FILTER: say which rows count within the aggregate: COUNT(CASE WHEN ... THEN 1 END)",
    "HINT": "a hint: give hints to the DataFrame",
}
_FUNCTIONS_TOO = frozenset({"FILTER", "OFFSET", "VALUES", "PIVOT", "INSERT"})
"""Words that may also be a column, or the name of a function."""


@attrs.frozen
class Clauses:
    """The words of each clause, without those that begin it.

    Attributes:
        name: what CREATE TABLE calls it; None without.
        begins: the word that begins each clause, by its kind.
        words: the words of each clause that there is.
        last: the last word of the statement.
    """

    name: str | None
    begins: Mapping[str, Token]
    words: Mapping[str, Sequence[Token]]
    last: Token


def clauses_of(text: Text, tokens: Sequence[Token]) -> Clauses:
    """The clauses of a statement.

    Raises:
        SqlError: one is missing, empty, out of order or twice there, or is none that a statement can have.
    """
    tokens = _one_statement(text, tokens)
    if not tokens:
        raise text.error(0, "there is no statement; write SELECT ... FROM ... GROUP BY ...")
    name, tokens = _created(text, tokens)
    if tokens[0].kind != "SELECT":
        says = _REFUSED.get(
            tokens[0].kind, f"{tokens[0].text!r}: a statement begins with SELECT or CREATE TABLE name AS SELECT"
        )
        raise text.error(tokens[0].start, f"{says}; the clauses are {ORDER}")
    _check_refused(text, tokens)
    begins: dict[str, Token] = {}
    words: dict[str, list[Token]] = {}
    here = ""
    for at, token in enumerate(tokens):
        clause = _clause_begun(tokens, at)
        if clause is None:
            words[here].append(token)
            continue
        if here and _CLAUSES.index(clause) <= _CLAUSES.index(here):
            twice = "is there twice" if clause in begins else f"comes before {begins[here].word}"
            raise text.error(token.start, f"{token.word} {twice}; the clauses are {ORDER}, each once, in this order")
        here = clause
        begins[here], words[here] = token, []
    clauses = Clauses(name, begins, words, tokens[-1])
    _check(text, clauses)
    return clauses


def _clause_begun(tokens: Sequence[Token], at: int) -> str | None:
    token = tokens[at]
    if token.depth:
        return None
    if token.kind in _CLAUSES and token.kind != "WINDOW":
        return token.kind
    if token.word in ("WINDOW", "EMIT") and begins_clause(tokens, at):
        return token.word
    return None


def _one_statement(text: Text, tokens: Sequence[Token]) -> Sequence[Token]:
    if tokens[-1].kind == "SEMICOLON":
        tokens = tokens[:-1]
    for token in tokens:
        if token.kind == "SEMICOLON":
            raise text.error(token.start, "';' within the text: bm.sql takes one statement; give it each by itself")
    return tokens


def _created(text: Text, tokens: Sequence[Token]) -> tuple[str | None, Sequence[Token]]:
    """The name that CREATE TABLE gives, and the rest."""
    if tokens[0].word != "CREATE":
        return None, tokens
    rule = "write CREATE TABLE name AS SELECT ..."
    if len(tokens) < 2 or tokens[1].word != "TABLE":
        raise text.error(tokens[min(1, len(tokens) - 1)].start, f"only a table is created; {rule}")
    at, parts = 2, []
    while at < len(tokens) and tokens[at].is_name and tokens[at].kind != "ALIAS":
        parts.append(tokens[at].text)
        at += 1
        if at >= len(tokens) or tokens[at].kind != "DOT":
            break
        at += 1
    if not parts or at + 1 >= len(tokens) or tokens[at].kind != "ALIAS":
        raise text.error(tokens[min(at, len(tokens) - 1)].start, f"CREATE TABLE has a name and a SELECT; {rule}")
    return ".".join(parts), tokens[at + 1 :]


def _check_refused(text: Text, tokens: Sequence[Token]) -> None:
    for at, token in enumerate(tokens):
        if token.kind == "SELECT" and at:
            raise text.error(token.start, f"a second SELECT: a statement has no subqueries; {_FIRST}")
        if token.kind == "DISTINCT" and at == 1:
            raise text.error(token.start, "SELECT DISTINCT: name the columns in GROUP BY, and say COUNT(*)")
        before = tokens[at - 1].kind
        if token.kind not in _REFUSED or before == "DOT":
            continue
        if token.kind == "FILTER":
            if before != "R_PAREN":
                continue
        elif token.kind in _FUNCTIONS_TOO and not begins_clause(tokens, at):
            continue
        raise text.error(token.start, _REFUSED[token.kind])


def _check(text: Text, clauses: Clauses) -> None:
    for kind, what in _NEEDED.items():
        if kind not in clauses.begins:
            word = kind.replace("_", " ")
            after = [token for other, token in clauses.begins.items() if _CLAUSES.index(other) > _CLAUSES.index(kind)]
            raise text.error((*after, clauses.last)[0].start, f"there is no {word}: {what}; the clauses are {ORDER}")
    for kind, token in clauses.begins.items():
        if not clauses.words[kind]:
            raise text.error(token.start, f"{token.word} says nothing; the clauses are {ORDER}")
