"""Reports of broken laws: the law as a sentence, the smallest example as a test, expected and given side by side."""

from __future__ import annotations

import copy
import inspect
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from pathlib import Path
from textwrap import indent
from typing import Any, TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis.errors import Flaky, HypothesisException

from beamish.errors import BeamishError, OptionError, UserFunctionError
from beamish.testing.written import Named, as_python

_T = TypeVar("_T")
TOLERANCE = 1e-9
"""Relative difference of two floats that count as equal, since sums of floats depend on the order."""
WIDEST = 76
"""Columns of text that two values side by side may take; wider ones are printed one below the other."""
MOST_CHARACTERS = 1_000
"""Characters of a line of a report; of a longer one the middle is left out."""
LONGEST = 40
"""Most lines of a report: equal lines of a longer one are left out, then those in the middle."""
Law = Callable[..., bool | None]
"""A function of concrete arguments whose docstring states the law, and in a second paragraph what it compares ("It compares ...").

It raises ``LawError`` where the law does not hold, and returns False where it has nothing to compare.
"""


class LawError(AssertionError):
    """A law does not hold.

    Attributes:
        law: the function that states it.
        expected: what the law asks for, as lines.
        given: the lines in its place.
    """

    def __init__(self, law: Law, expected: Sequence[str], given: Sequence[str], example: str = "") -> None:
        parts = [f"{law.__name__}\n\n{indent(sentence(law), '    ')}", beside(expected, given), example]
        super().__init__("\n\n".join(filter(None, parts)))
        self.law, self.expected, self.given = law, list(expected), list(given)


def sentence(law: Law) -> str:
    """The law, in the words of its docstring."""
    return (inspect.getdoc(law) or "").partition("\n\n")[0]


def compares(law: Law) -> str:
    """The part of the docstring after "It compares": the examples in which the law may be broken."""
    return " ".join((inspect.getdoc(law) or "").partition("\n\nIt compares ")[2].split()).rstrip(".")


def require(law: Law, *, expected: Any, given: Any, tolerance: float = TOLERANCE) -> None:
    """Raise unless both are equal: NaN to NaN, floats within a relative tolerance.

    Raises:
        LawError: they differ.
    """
    if not same(expected, given, tolerance):
        raise LawError(law, _lines(expected), _lines(given))


def require_each(
    law: Law,
    expected: Sequence[_T],
    given: Sequence[_T],
    *,
    value: Callable[[_T], Any],
    shown: Callable[[_T], str],
    tolerance: float = TOLERANCE,
) -> None:
    """Raise unless both have equal values; the report has a line for each.

    Raises:
        LawError: they differ.
    """
    if not same(list(map(value, expected)), list(map(value, given)), tolerance):
        raise LawError(law, list(map(shown, expected)), list(map(shown, given)))


def _lines(value: Any) -> list[str]:
    return [str(one) if isinstance(one, str) else repr(one) for one in (value if isinstance(value, list) else [value])]


def same(a: Any, b: Any, tolerance: float = TOLERANCE) -> bool:
    """Whether two values are equal: NaN to NaN, a bool only to a bool, floats within a relative tolerance."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[name], b[name], tolerance) for name in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(same(one, other, tolerance) for one, other in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=tolerance)
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def beside(expected: Sequence[str], given: Sequence[str]) -> str:
    """Two lists of lines side by side, equal ones on one line, others marked."""
    pairs: list[tuple[str, str]] = []
    for _, i, j, k, m in SequenceMatcher(a=expected, b=given, autojunk=False).get_opcodes():
        pairs += zip_longest(expected[i:j], given[k:m], fillvalue="")
    marked = _shortened([(" " if one == other else "|", one, other) for one, other in pairs])
    marked = [(mark, _cut(one), _cut(other)) for mark, one, other in marked]
    pairs = [(one, other) for _, one, other in marked]
    width = max([len("expected"), *(len(one) for one, _ in pairs)])
    if width + max([0, *(len(other) for _, other in pairs)]) <= 2 * WIDEST:
        table = [(" ", "expected", "given"), *marked]
        return "\n".join(f"{one:<{width}} {mark} {other}".rstrip() for mark, one, other in table)
    sides = ([f"  {line}" for line in side if line] for side in zip(*pairs, strict=True))
    return "\n".join(line for name, side in zip(("expected", "given"), sides, strict=True) for line in (name, *side))


def _cut(line: str) -> str:
    """A line, without the middle of a very long one."""
    left_out = len(line) - MOST_CHARACTERS
    half = MOST_CHARACTERS // 2
    return line if left_out <= 0 else f"{line[:half]} ({left_out} more characters) {line[-half:]}"


def _shortened(marked: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Marked lines; if there are many, without the equal ones, and then without those in the middle."""
    if len(marked) <= LONGEST:
        return marked
    differ = [line for line in marked if line[0] == "|"]
    ends = differ if len(differ) <= LONGEST else [*differ[: LONGEST // 2], *differ[-LONGEST // 2 :]]
    left_out = f"({len(marked) - len(ends)} more lines)"
    middle = min(len(ends), LONGEST // 2)
    return [*ends[:middle], (" ", left_out, left_out), *ends[middle:]]


class _Enough(BaseException):
    """No other example is tried: it ends Hypothesis, which catches errors."""


def search(
    examples_of: Any,
    laws_of: Callable[[Any], Mapping[Law, Sequence[Any]]],
    *,
    examples: int,
    seed: int,
    held: Callable[[Any], None] | None = None,
    picture: Callable[[Sequence[Any]], Path] | None = None,
    tries: int = 1_000,
    smaller: Callable[[Sequence[Any]], Iterator[Sequence[Any]]] = lambda _: iter(()),
) -> Counter[Law]:
    """Try laws on drawn examples; the error is that of the smallest example that breaks one.

    Args:
        examples_of: the Hypothesis strategy that draws them.
        laws_of: the laws that apply to an example, each with its arguments.
        examples: how many are drawn.
        seed: another one draws others.
        held: called for each example that breaks no law.
        picture: draws the arguments of the broken law to a file; returns its path.
        tries: how many other examples are tried in place of the one that broke a law first, to find a small one.
        smaller: the arguments of a law with a part left out, each; the first that break it are tried again, until none do.

    Returns:
        in how many examples each law has compared something.

    Raises:
        LawError: a law does not hold.
        BeamishError: that of the first example that raises one, such as a wrong expectation.
    """
    __tracebackhide__ = True  # pytest shows the user's test
    broken: list[tuple[LawError, Sequence[Any]]] = []
    failed: list[BeamishError] = []
    counted: Counter[Law] = Counter()
    left = tries

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
    )
    @hypothesis.given(examples_of)
    def run(example: Any) -> None:
        nonlocal left
        if not left:
            raise _Enough
        left -= bool(broken)
        try:
            tried(example)
        except BeamishError as error:  # of a pipeline, or of what is expected: it breaks no law
            if not broken:
                failed.append(error)
                raise _Enough from error

    def tried(example: Any) -> None:
        for law, arguments in laws_of(example).items():
            if broken and law is not broken[0][0].law:
                continue  # the example is made smaller for the law that was broken first
            try:
                counted[law] += hold(law, *arguments)
            except LawError as error:
                broken.append((error, arguments))
                raise
        if held is not None:
            held(example)

    try:
        run()
    except (LawError, Flaky, _Enough) as found:
        if failed:
            raise failed[0] from failed[0].__cause__
        error, arguments = _smallest(*broken[-1], smaller)
        parts = ["Drawn again, it holds: a function depends on more than its arguments."] * isinstance(found, Flaky)
        parts += ["As a test:", indent(as_test(error.law, arguments), "    ")]
        parts += [] if picture is None else [f"Picture: {picture(arguments)}"]
        raise LawError(error.law, error.expected, error.given, "\n\n".join(parts)) from error.__cause__
    return counted


def _smallest(
    error: LawError, arguments: Sequence[Any], smaller: Callable[[Sequence[Any]], Iterator[Sequence[Any]]]
) -> tuple[LawError, Sequence[Any]]:
    """The arguments that still break the law, with no part that could be left out."""
    for candidate in smaller(arguments):
        try:
            hold(error.law, *candidate)
        except LawError as still:
            return _smallest(still, candidate, smaller)
        except BeamishError:
            continue
    return error, arguments


def hold(law: Law, *arguments: Any) -> bool:
    """Try a law on copies of its arguments; returns whether there was something to compare.

    An error of a user's function breaks it.

    Raises:
        LawError: it does not hold.
        BeamishError: the options of a pipeline, or its columns, are invalid.
    """
    try:
        return law(*(one.value if isinstance(one, Named) else copy.deepcopy(one) for one in arguments)) is not False
    except UserFunctionError as error:
        raise LawError(law, ["no error"], [error.raised or str(error)]) from error.__cause__
    except (BeamishError, LawError, HypothesisException):
        raise
    except Exception as error:
        raise LawError(law, ["no error"], [f"{type(error).__name__}: {error}"]) from error


def value_of_function(function: Callable[..., _T], *arguments: Any) -> _T:
    """The value of a function of the test, which is wrong where it fails: the law is not broken.

    Raises:
        OptionError: it raised an error.
    """
    try:
        return function(*arguments)
    except BeamishError:
        raise
    except Exception as error:
        name = getattr(function, "__name__", repr(function))
        shown = ", ".join(f"{one!r:.200}" for one in arguments)
        raise OptionError(
            f"expected: {name}({shown}) raised {type(error).__name__}: {error}; correct what is expected, which says nothing of the pipeline"
        ) from error


def as_test(law: Law, arguments: Sequence[Any]) -> str:
    """A law and its arguments as a test that can be pasted into a file that has the user's own names."""
    texts = list(map(as_python, arguments))
    call = f"laws.{law.__name__}({', '.join(texts)})"
    if len(call) > WIDEST or any("\n" in text for text in texts):
        call = f"laws.{law.__name__}(\n" + "".join(f"{indent(text, '    ')},\n" for text in texts) + ")"
    own = {type(one).__name__ for one in arguments if type(one).__module__.partition(".")[0] != "beamish"}
    return "\n".join([*_imports(call, own), "", "", f"def test_{law.__name__}():", indent(call, "    ")])


def _imports(call: str, own: set[str]) -> list[str]:
    """The imports of all names in a call but the user's own."""
    names = set(re.findall(r"(?<![\w.'])([A-Za-z]\w*)(?=[(.])", call))
    lines = ["import datetime"] * ("datetime" in names) + ["from decimal import Decimal"] * ("Decimal" in names)
    for module in ("beamish", "beamish.accumulations", "beamish.triggers"):
        public = sorted(names.intersection(sys.modules[module].__all__) - own)
        lines += [f"from {module} import {', '.join(public)}"] * bool(public)
    lines.append(f"from beamish.testing import {'TestStream, ' * ('TestStream' in names)}laws")
    return lines
