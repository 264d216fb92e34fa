"""The identity of an option in a checkpoint."""

import dataclasses
import enum
import json
import math
import operator
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from zoneinfo import ZoneInfo

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish import accumulations as a
from beamish.durations import duration
from beamish.kernels.identity import check_says_what_it_is, identity, same_identity
from tests.accumulations.every import EVERY


class Colour(enum.Enum):
    RED = "red"


@attrs.frozen
class Option:
    n: int
    fn: object = None
    many: tuple = ()


@attrs.frozen
class Undeclared:
    n: object = object()


@dataclasses.dataclass
class Record:
    n: int
    fn: object = None
    many: list = dataclasses.field(default_factory=list)


def same(a, b):
    """Whether they are the same, before and after a way through JSON."""
    back = json.loads(json.dumps(identity(a)))
    assert same_identity(back, identity(a))
    return same_identity(back, identity(b))


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.decimals()
    | st.dates()
    | st.datetimes(timezones=st.none() | st.just(UTC))
    | st.timedeltas()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.builds(Option, n=st.integers(), many=st.tuples(inner))
    ),
    max_leaves=8,
)


@given(VALUES)
def test_an_identity_survives_json(value):
    text = json.dumps(identity(value))
    assert json.dumps(json.loads(text)) == text
    assert same(value, value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (0.5, 0.5),
        ("é", "é"),
        (math.nan, {"f": "nan"}),
        (-math.inf, {"f": "-inf"}),
        (b"ab", {"b": "YWI="}),
        (Decimal("1.50"), {"D": "1.50"}),
        (date(2024, 1, 2), {"d": "2024-01-02"}),
        (timedelta(days=1), {"e": [1, 0, 0]}),
        (Colour.RED, "red"),
        (bm.AccumulationMode.DISCARDING, bm.AccumulationMode.DISCARDING.value),
        ((1, [2, (3,)]), [1, [2, [3]]]),
        ({"b": 1, "a": 2}, [["a", 2], ["b", 1]]),
        ({2, 1}, [1, 2]),
        (Option(1), {"is": "Option", "n": 1}),
        (Option(1, many=(1,)), {"is": "Option", "n": 1, "many": [1]}),
        (Record(1), {"is": "Record", "n": 1}),
        (Record(1, many=[2]), {"is": "Record", "n": 1, "many": [2]}),
        (duration("x", "2 minutes"), 120_000_000),
        (max, "builtins.max"),
        (operator.add, "_operator.add"),
        (json.dumps, "json.dumps"),
        (json, "json"),
        (str.join, "<method 'join' of 'str' objects>"),
        (ZoneInfo("Europe/Berlin"), "zoneinfo.ZoneInfo(key='Europe/Berlin')"),
        (partial(operator.add, 1), {"is": "partial", "function": "_operator.add", "arguments": [[1], []]}),
        ([1].count, {"method": "list.count", "of": [1]}),
        (a.Sum("x"), {"is": "Sum", "column": "x"}),
        (a.Count(), {"is": "Count"}),
        (a.CountDistinct("x", "y"), {"is": "CountDistinct", "columns": ["x", "y"]}),
    ],
)
def test_the_identity_of_a_value(value, expected):
    assert identity(value) == expected


def test_moments_and_durations_are_exact():
    assert not same(datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC))
    assert identity(bm.FixedWindows("10 minutes"))["size"] == 600_000_000


@pytest.mark.parametrize("accumulation", EVERY, ids=repr)
def test_identities_of_built_in_accumulations_differ(accumulation):
    assert [one for one in EVERY if same(one, accumulation)] == [accumulation]


@pytest.mark.parametrize(
    ("one", "other"), [(1, True), (0, False), (1, "1"), (None, False), ([1], [1, 1]), ({}, {"a": 1}), (1.5, "1.5")]
)
def test_values_of_other_types_differ(one, other):
    assert not same(one, other)


def test_a_number_is_the_same_whole_or_float():
    assert same(Option(1), Option(1.0))


def test_a_new_field_at_its_default_changes_nothing_and_at_another_value_it_does():
    before = identity(attrs.make_class("Kind", {"n": attrs.field()})(1))
    after = attrs.make_class("Kind", {"n": attrs.field(), "new": attrs.field(default="0", converter=int)})
    assert same_identity(before, identity(after(1)))
    assert not same_identity(before, identity(after(1, "2")))


def test_defaults_are_compared_as_converters_and_factories_leave_them():
    takes = attrs.Converter(lambda value, owner, field: (field.name, owner.n, value), takes_self=True, takes_field=True)

    @attrs.frozen
    class Kind:
        n: int
        a: object = attrs.field(default=1, converter=takes)  # type: ignore[misc] # mypy knows no converters that take the owner
        b: list = attrs.Factory(list)
        c: int = attrs.Factory(lambda self: self.n + 1, takes_self=True)
        unseen: int = attrs.field(default=0, eq=False)

    assert list(identity(Kind(1, unseen=5))) == ["is", "n"]
    assert list(identity(Kind(1, a=2, b=[1], c=3))) == ["is", "n", "a", "b", "c"]


def test_two_different_lambdas_differ_and_the_same_text_twice_does_not():
    def make(n):
        return lambda x, y=1: x + y + n

    assert same(Option(1, lambda x: x + 1), Option(1, lambda x: x + 1))
    assert not same(Option(1, lambda x: x + 1), Option(1, lambda x: x + 2))
    assert not same(lambda x: x + 1, lambda x: x - 1)
    assert not same(lambda x: x.real, lambda x: x.imag)
    assert not same(lambda x: x in {1, 2}, lambda x: x in {1, 3})
    assert not same(lambda x: x + 1, lambda x: x + 1.0)
    assert not same(lambda: lambda y: y + 1, lambda: lambda y: y + 2)
    assert same(make(1), make(1))
    assert not same(make(1), make(2))
    assert not same(lambda x, y=1: x, lambda x, y=2: x)  # noqa: ARG005
    assert not same(lambda *, y=1: y, lambda *, y=2: y)
    assert not same(lambda x: x, lambda *x: x)


def test_code_of_another_python_is_compared_by_name_only():
    now = identity(lambda x: x + 1)
    assert same_identity({**now, "python": "3.1", "digest": "another"}, now)
    assert not same_identity({**now, "digest": "another"}, now)
    assert not same_identity({**now, "python": "3.1", "function": "another"}, now)


def test_a_function_that_closes_over_itself_or_over_nothing_yet_has_an_identity():
    def again(n):
        return again(n - 1) if n else later

    assert same(again, again)
    early = identity(again)
    later = 1
    assert not same_identity(early, identity(again))


def test_a_method_is_that_of_its_object():
    class Scale:
        def __init__(self, by):
            self.by = by

        def apply(self, x):
            return x * self.by

    assert same(Scale(2).apply, Scale(2).apply)
    assert not same(Scale(2).apply, Scale(3).apply)


def test_plain_classes_are_identified_by_repr_or_attributes():
    class Plain:
        def __init__(self, n):
            self.n = n

    class Slots:
        __slots__ = ("n",)

        def __init__(self, n):
            self.n = n

    class Printed(Plain):
        def __repr__(self):
            return f"Printed({self.n}, {object()})"

    class Option(bm.WindowOption):
        def __init__(self, n):
            self._n = n

    class Own(Printed):
        def identity(self):
            return "own", self.n, Colour.RED

    where = "test_plain_classes_are_identified_by_repr_or_attributes.<locals>."
    assert identity(Plain(1)) == {"is": f"{where}Plain", "n": 1}
    assert identity(Slots(1)) == {"is": f"{where}Slots", "n": 1}
    assert identity(Printed(1)) == "Printed(1, <object object>)"
    assert identity(Own(1)) == ["own", 1, "red"]
    assert identity(Option(1)) == {"is": f"{where}Option", "_n": 1}
    assert repr(Option("a")) == "Option(n='a')"
    assert identity(Plain) == f"{__name__}.{where}Plain"


def test_an_object_with_only_an_address_has_no_identity():
    class Plain:
        def __init__(self, held):
            self.held = held

    for option in (Plain(object()), Option(1, many=([{"a": object()}],)), Plain(Plain(object())), Record(object())):
        with pytest.raises(bm.OptionError, match=r"window\(option\)=.*object object at .* has no identity"):
            check_says_what_it_is("window(option)", option)
    told = [max, lambda: 1, Colour.RED, ZoneInfo("UTC"), np.array([1]), {"a": (1, {2})}, Option(1), a.Count(), Plain]
    check_says_what_it_is("window(option)", Plain([*told, Plain(told)]))
    check_says_what_it_is("window(option)", Undeclared(3))
    with pytest.raises(bm.OptionError, match="has no identity"):
        check_says_what_it_is("window(option)", Undeclared())


def test_long_arrays_have_a_digest():
    assert identity(np.arange(3)) == "array([0, 1, 2])"
    many = np.arange(5000)
    other = many.copy()
    other[2500] = 0
    assert same(many, many.copy())
    assert not same(many, other)


def test_a_value_inside_itself_has_an_identity():
    loop = [1]
    loop.append(loop)
    assert identity(loop) == [1, "..."]


@pytest.mark.dear
def test_identities_are_the_same_in_every_process():
    program = """
import json
from beamish import accumulations as a
from beamish.kernels.identity import identity
print(json.dumps(identity([{"b", "a", "c"}, a.Fold(0, lambda n, x: n + (x in {"p", "q", "r"}), "x")])))
"""
    told = {
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=env).stdout
        for env in ({"PYTHONHASHSEED": str(seed), "PYTHONPATH": "."} for seed in (1, 2, 3))
    }
    assert len(told) == 1
