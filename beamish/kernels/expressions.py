"""Formulas: pyarrow expressions as values, evaluated on tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from beamish.errors import HIDDEN, ColumnError, OptionError, UserFunctionError, cause, check_memory, values_are_hidden
from beamish.kernels.column_names import PREFIX
from beamish.kernels.field_paths import resolved, with_fields

NO_OTHER = "a checkpoint does not allow another expression: begin a new one, with an expression that is defined for every value"
"""The fix if an expression fails on rows that cannot be dropped."""
ANOTHER = "use an expression that is defined for every value, and restart from the same checkpoint"
"""The fix if an expression fails on panes that are not retracted."""

_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_NULL_COMPARED = re.compile(r" (?:==|!=|<=?|>=?) null\[|\bnull\[[^]]*\] (?:==|!=|<=?|>=?) ")
"""A column in pyarrow's text of an expression."""


@attrs.frozen(eq=False, repr=False)
class Formula:
    """A pyarrow expression, such as ``pc.field("n") > 5``; equal if its text is equal.

    Args:
        expression: the expression.
    """

    expression: pc.Expression

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Formula) and bool(self.expression.equals(other.expression))

    def __hash__(self) -> int:
        return hash(str(self.expression))

    def __repr__(self) -> str:
        return str(self.expression)

    def identity(self) -> str:
        """Its identity in a checkpoint."""
        return str(self.expression)

    def of(self, table: pa.Table) -> pa.Array:
        """Evaluate it: one value per row."""
        values = _project(self, with_fields(table, _with_named(self, table.schema)))
        return values.combine_chunks() if table.num_rows else pa.array([], values.type)

    def type_in(self, where: str, schema: pa.Schema) -> pa.DataType:
        """The type of its values for this schema (ColumnError: a column is missing or has an unsupported type)."""
        try:
            return self.of(schema.empty_table()).type
        except (pa.ArrowException, KeyError, NotImplementedError) as error:
            raise ColumnError(f"{where}: {_said(error)}; the columns are {_shown(schema)}") from error

    def columns_in(self, schema: pa.Schema) -> tuple[str, ...]:
        """The columns that it reads."""
        return tuple(name for name in schema.names if not self._goes_without(name, schema))

    def _goes_without(self, name: str, schema: pa.Schema) -> bool:
        try:
            self.of(schema.remove(schema.get_field_index(name)).empty_table())
        except (pa.ArrowException, KeyError):
            return False
        return True

    def computed(self, where: str, table: pa.Table, *, way_out: str) -> pa.Array:
        """Evaluate it in a running query; ``way_out``: the fix if it fails (UserFunctionError: it fails on a value)."""
        try:
            return self.of(table)
        except pa.ArrowException as error:
            check_memory(error)
            raised = f"{where}: {HIDDEN if values_are_hidden() else _said(error)}"
            result = UserFunctionError(f"{raised}; {way_out}")
            result.raised = raised
            raise result from cause(error)


def _project(formula: Formula, table: pa.Table) -> pa.ChunkedArray:
    from pyarrow import acero  # it loads pandas, which is not needed without formulas

    project = acero.Declaration("project", acero.ProjectNodeOptions([formula.expression], [""]))
    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(table))
    return acero.Declaration.from_sequence([source, project]).to_table(use_threads=False).column(0)


_MISSING = re.compile(r"No match for FieldRef\.Name\((.*)\) in ", re.DOTALL)


@lru_cache
def _with_named(formula: Formula, schema: pa.Schema) -> pa.Schema:
    """The columns, and the nested fields that a formula names like columns."""
    while True:
        try:
            _project(formula, with_fields(schema.empty_table(), schema))
        except pa.ArrowInvalid as error:
            missing = _MISSING.search(str(error))
            found = None if missing is None else resolved(schema, missing.group(1), any_case=False)
            if found is None:
                return schema
            schema = schema.append(found)
        except (pa.ArrowException, KeyError):
            return schema  # wherever it is computed this is raised
        else:
            return schema


def read_formula(where: str, value: Any, example: str) -> Formula:
    """Read a formula (OptionError: not a pyarrow expression)."""
    if isinstance(value, Formula):
        return value
    if not isinstance(value, pc.Expression):
        raise OptionError(
            f"{where}={value!r}: must be a pyarrow expression (import pyarrow.compute as pc), such as {example}"
        )
    return Formula(value)


def read_condition(where: str, value: Any, example: str) -> Formula:
    """Read a condition on rows or panes (OptionError: not a pyarrow expression, one that is never true, or one that compares with null)."""
    formula = read_formula(where, value, example)
    if _NULL_COMPARED.search(_TEXT.sub("", str(formula))):
        raise OptionError(
            f"{where}={formula!r}: a comparison with null is null for every row, so never true; use pc.field('x').is_null(), "
            "or ~pc.field('x').is_null()"
        )
    try:
        constant = formula.of(pa.table({PREFIX: [0]}))[0].as_py()
    except (pa.ArrowException, KeyError, NotImplementedError):
        return formula  # it reads columns
    if constant in (None, False):
        raise OptionError(f"{where}={formula!r}: never true, so it would drop every row; use one such as {example}")
    return formula


def check_condition(where: str, formula: Formula, schema: pa.Schema) -> None:
    """Check that a formula is a condition for this schema (ColumnError: not a boolean expression for this schema)."""
    type_ = formula.type_in(where, schema)
    if not (pa.types.is_boolean(type_) or pa.types.is_null(type_)):
        raise ColumnError(f"{where}: is {type_}, and must be a boolean, such as pc.field('n') > 5")


def shown_formulas(formulas: Mapping[str, Formula]) -> str:
    """Formulas by name, as written in code."""
    return ", ".join(f"{name}={formula!r}" for name, formula in formulas.items())


def _said(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
