"""Strategies of columns of nested types: structs in structs, lists of structs, nulls at each level, slices."""

from decimal import Decimal

import pyarrow as pa
from hypothesis import strategies as st

SIMPLE = {
    pa.int64(): st.integers(0, 2),
    pa.string(): st.sampled_from(["", "a", "bb"]),
    pa.bool_(): st.booleans(),
    pa.float64(): st.sampled_from([0.0, -1.5]),
    pa.decimal128(10, 2): st.sampled_from([Decimal("0.00"), Decimal("1.25")]),
    pa.null(): st.none(),
}


def _nest(inner):
    fields = st.lists(inner, max_size=3).map(lambda types: pa.struct([(f"f{i}", one) for i, one in enumerate(types)]))
    return fields | inner.map(pa.list_)


TYPES = st.recursive(st.sampled_from(list(SIMPLE)), _nest, max_leaves=4)
"""A strategy: types, most of them nested."""


def values_of(type_):
    """A strategy: values of a type, each with nulls in all its parts."""
    if pa.types.is_struct(type_):
        names = [field.name for field in type_]
        rows = st.tuples(*(values_of(field.type) for field in type_))
        return st.none() | rows.map(lambda row: dict(zip(names, row, strict=True)))
    if pa.types.is_list(type_):
        return st.none() | st.lists(values_of(type_.value_type), max_size=3)
    return st.none() | SIMPLE[type_]


@st.composite
def nested_columns(draw):
    """A strategy: columns, some of them slices of longer ones."""
    type_ = draw(TYPES)
    values = draw(st.lists(values_of(type_), max_size=8))
    start = draw(st.integers(0, len(values)))
    return pa.array(values, type_).slice(start)
