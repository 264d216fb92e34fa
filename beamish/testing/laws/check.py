"""The check of a pipeline: all laws that apply, on drawn scripts."""

from __future__ import annotations

import importlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import attrs
from hypothesis import strategies as st

from beamish.accumulations.base.accumulation import Accumulation
from beamish.durations import duration
from beamish.errors import OptionError
from beamish.flow import Flow
from beamish.forms import FromChangelog
from beamish.testing.laws.accumulations import check_accumulation
from beamish.testing.laws.expected import Expected, Query, read_expected
from beamish.testing.laws.pipelines import (
    arrival_order_is_irrelevant,
    batches_are_irrelevant,
    changes_fold_to_live_panes,
    discarding_panes_add_up,
    every_script_runs,
    live_panes_equal_batch,
    live_panes_equal_expected,
    no_row_is_lost,
    no_row_is_too_late,
    panes_are_numbered,
    restart_is_irrelevant,
    retractions_repeat_the_live_pane,
    spark_gives_the_same,
    spark_session,
)
from beamish.testing.laws.report import TOLERANCE, Law, LawError, hold, search
from beamish.testing.laws.runs import OfFlow, fresh, has_own, is_own, outcome, shared_runs
from beamish.testing.laws.seen import Seen, VacuousError, facts
from beamish.testing.laws.triggers import check_trigger
from beamish.testing.laws.variants import (
    ended,
    firings_counted,
    follows_its_rows,
    may_be_early,
    merges,
    of_windows,
    shorter,
    takes_sources,
    why_no_parts,
    why_no_retractions,
    why_not_counted,
    why_not_folded,
    why_not_in_one_batch,
    why_not_numbered,
)
from beamish.testing.strategies.rows import rows as rows_of_schema
from beamish.testing.strategies.scripts import scripts
from beamish.testing.strategies.spans import parts
from beamish.testing.stream import Runnable, TestStream
from beamish.testing.written import Named, as_python
from beamish.triggers import Trigger

_START = 3_600
"""Where scripts for Spark begin, in seconds: its watermark starts after the epoch."""
_CAUSES = (restart_is_irrelevant, arrival_order_is_irrelevant, batches_are_irrelevant)
"""The laws that ``live_panes_equal_batch`` includes."""


_SELDOM = (restart_is_irrelevant, no_row_is_lost, discarding_panes_add_up)
"""Laws that need another run, which are not tried in each example."""
_EVERY = 4
"""They are tried in one of this many examples; in every other one where a pipeline has own parts."""
_TRIES = 100
"""Number of examples that are tried in place of one that breaks a law, before parts of it are left out."""


@attrs.define
class Report(Seen):
    """The result of a check: counts of what was drawn, and the laws.

    Attributes:
        held: in how many examples each law has compared something and held.
        skipped: the laws that do not apply, each with the reason.
    """

    held: Counter[str] = attrs.Factory(Counter)
    skipped: dict[str, str] = attrs.Factory(dict)

    def checked(self, *wanted: str | Law, floor: float) -> Report:
        """Require that at least this share of the examples had rows and each of these; returns itself.

        Raises:
            VacuousError: fewer had.
        """
        seen = Seen(self.examples, self.counts, self.in_examples + self.held)
        seen.check("rows", *(one for one in wanted if one not in _SELDOM), floor=floor)
        seen.check(*(one for one in wanted if one in _SELDOM), floor=floor / _EVERY)
        return self

    def __str__(self) -> str:
        lines = [Seen.__str__(self)]
        lines += [f"held: {name} ({count} examples)" for name, count in self.held.items()]
        lines += [f"not applied: {name}: {reason}" for name, reason in self.skipped.items()]
        return "\n".join(lines)


def check(
    pipeline: Runnable,
    *,
    rows: Any,
    expected: Expected | None = None,
    examples: int = 200,
    seed: int = 0,
    picture: str | Path | None = None,
    on_spark: int = 0,
    tolerance: float = TOLERANCE,
    floor: float = 0.02,
    progress: Callable[[int], None] | None = None,
    counts_firings: bool = False,
    **script: Any,
) -> Report:
    """Check a pipeline on drawn scripts: all laws that apply to it.

    The laws: the live panes at the end are the expected ones, and those of the same rows in one batch; the order of arrival, the cut
    into batches and restarts change no live pane; retractions repeat the live pane, and changes fold to the live panes; no row is lost
    in silence; discarding panes add up; Spark gives the same. Its own accumulations and triggers are checked too, as
    by ``check_accumulation`` and ``check_trigger``.

    Args:
        pipeline: any pipeline.
        rows: its rows: a schema (``"user string, ts timestamp"``) or a strategy of dicts; of several inputs by name.
        expected: what the live panes at the end are, as rows with some of their columns: keys, values, ``start``, ``end``,
            ``window``. A function of the rows, a list of dicts (of several inputs lists by name), or a query in DuckDB's SQL over the table
            ``rows`` (or those of the inputs). It sees all rows but those that were dropped as too late, for their event time or for an error. None: not compared.
        examples: the number of examples.
        seed: of the examples; another seed draws others.
        picture: a file for the timeline of the smallest script that breaks a law: ``.html``, ``.png``, ``.svg`` or ``.pdf``.
        on_spark: the number of further examples that run on Spark too, in the active session or a local one.
        tolerance: relative, for floats, whose sums depend on the order of rows; 0: exact.
        floor: share of the examples in which each law must have something to compare, and which must have what the pipeline is
            made for: merged windows, early panes, removed rows, and with ``disorder`` rows behind the watermark; 0: none.
        progress: called with the number of examples so far.
        counts_firings: whether a stage may add up panes of the one before that are neither final nor retracted, so that its result
            depends on how often that one fires.
        script: of ``strategies.scripts``, such as ``keys=3``. With ``disorder="30 seconds"``, how far the source's rows are out of order,
            the watermark follows the pipeline's policy, and no row may be too late. ``unique``, the columns that identify a row in
            the source, is by default those that the pipeline deduplicates by.

    Returns:
        what was drawn, the laws that held, and why others do not apply.

    Raises:
        LawError: a law does not hold, with the smallest script that breaks it.
        VacuousError: too few examples had something to compare, or a stage counts firings.
        OptionError: an argument is invalid, or ``expected`` fails, or its values have another type than those of the panes.
        PipelineError, ColumnError: the pipeline is invalid, or the rows lack a column.

    Example:
        >>> import beamish as bm
        >>> from beamish.accumulations import Count
        >>> from beamish.testing import laws
        >>> visits = (
        ...     bm.Pipeline()
        ...     .event_time("ts", bm.BoundedOutOfOrderness("1 minute"))
        ...     .key_by("user")
        ...     .window(bm.Sessions("10 minutes"))
        ...     .accumulating_and_retracting()
        ...     .accumulate(n=Count())
        ... )
        >>> laws.check(visits, rows="user string, ts timestamp", examples=20, floor=0).examples
        20
    """
    __tracebackhide__ = True
    if not isinstance(getattr(pipeline, "flow", None), Flow):
        raise OptionError(
            f"check({pipeline!r:.100}): must be a pipeline, such as bm.Pipeline()...accumulate(n=Count())"
        )
    pipeline = OfFlow(fresh(pipeline.flow))
    by_input = {name: _strategy(of) for name, of in rows.items()} if isinstance(rows, Mapping) else _strategy(rows)
    checked = _Checked(
        pipeline,
        None if expected is None else read_expected(expected),
        tolerance,
        disorder=script.get("disorder"),
        report=Report(),
        progress=progress,
    )
    script = {"unique": _identity(pipeline.flow.completed), **script}
    drawn = scripts(pipeline, by_input, **script)
    _check_own_parts(
        checked.report, pipeline.flow, by_input, examples=examples, seed=seed, floor=floor, tolerance=tolerance
    )
    draw = None if picture is None else _timeline(pipeline, Path(picture))
    with shared_runs():
        search(
            drawn,
            checked.laws_of,
            examples=examples,
            seed=seed,
            held=checked.count,
            picture=draw,
            tries=_TRIES,
            smaller=checked.smaller,
        )
    if on_spark:
        spark = Named(spark_session(), "spark")
        later = scripts(pipeline, by_input, **{"start": _START, "batches": 6, **script})
        search(
            later,
            lambda one: {spark_gives_the_same: (Named(pipeline, "pipeline"), one, spark)},
            examples=on_spark,
            seed=seed,
            held=lambda _: checked.report.held.update([spark_gives_the_same.__name__]),
            picture=draw,
        )
    else:
        checked.report.skipped[spark_gives_the_same.__name__] = "on_spark is 0"
    reason = None if counts_firings else firings_counted(pipeline)
    if reason is not None:
        raise VacuousError(f"the check shows nothing of the number of firings: {reason}; or pass counts_firings=True")
    return checked.report.checked(*checked.of_interest, floor=floor)


def _strategy(rows: Any) -> st.SearchStrategy[Any]:
    return rows if isinstance(rows, st.SearchStrategy) else rows_of_schema(rows)


def _identity(flow: Flow) -> tuple[str, ...]:
    """The columns by which rows are deduplicated: rows that are equal in them are the same row."""
    for source, below, _ in flow.leaves:
        deduplication = below.stage.core.declared("deduplication")
        if deduplication is not None:
            return (*source.keys, *deduplication.columns)
    return ()


def _timeline(pipeline: Runnable, path: Path) -> Callable[[Sequence[Any]], Path]:
    """Draws the script among a law's arguments; ``beamish.plot`` is of a layer above."""
    plot = importlib.import_module("beamish.plot")

    def draw(arguments: Sequence[Any]) -> Path:
        (script,) = (one for one in arguments if isinstance(one, TestStream))
        saved: Path = plot.timeline(pipeline, script).save(path)
        return saved

    return draw


@attrs.define
class _Checked:
    """A pipeline that is checked.

    Attributes:
        pipeline: the pipeline; it never runs itself, only copies of it do.
        expected: computes the expected rows; None: nothing is expected.
        tolerance: of floats.
        disorder: of the source, if it is declared.
        report: what was drawn.
        progress: called with the number of examples so far.
        applies: the laws that are checked.
        broken: the law that an example broke; None: none so far.
        compared: per law whether the last example compared something.
        every: a law of a script is checked in every such example.
    """

    pipeline: Runnable
    expected: Callable[..., Any] | None
    tolerance: float
    disorder: Any
    report: Report
    progress: Callable[[int], None] | None
    applies: list[Law] = attrs.field(init=False, factory=list)
    broken: Law | None = attrs.field(init=False, default=None)
    compared: dict[Law, bool] = attrs.field(init=False, factory=lambda: defaultdict(bool))
    every: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.every = 2 if has_own(self.pipeline) else _EVERY
        why: dict[Law, str | None] = {
            every_script_runs: None,
            live_panes_equal_expected: "nothing is expected" if self.expected is None else None,
            live_panes_equal_batch: why_not_in_one_batch(self.pipeline),
            restart_is_irrelevant: None,
            retractions_repeat_the_live_pane: why_no_retractions(self.pipeline),
            changes_fold_to_live_panes: why_not_folded(self.pipeline),
            no_row_is_lost: why_not_counted(self.pipeline),
            no_row_is_too_late: "the disorder of the source is not declared" if self.disorder is None else None,
            discarding_panes_add_up: why_no_parts(self.pipeline),
            panes_are_numbered: why_not_numbered(self.pipeline),
        }
        for law, reason in why.items():
            if reason is None:
                self.applies.append(law)
            else:
                self.report.skipped[law.__name__] = reason

    @property
    def of_interest(self) -> Iterator[str | Law]:
        """Needed in the drawn examples: something to compare for each law, and what the pipeline is made for."""
        yield from self.applies
        flow = self.pipeline.flow.completed
        if any(map(merges, flow.flows)):
            yield "merged windows"
        if may_be_early(self.pipeline):
            yield "early panes"
        if any(isinstance(source.form, FromChangelog) for source in flow.sources):
            yield "removals"
        if self.disorder is not None and (disorder_us := duration("check(disorder)", self.disorder).us):
            policies = [source.watermark for source in flow.sources if source.watermark is not None]
            least_us = min((one.delay.us for one in policies if one.moved_by_rows), default=disorder_us)
            yield "rows behind the watermark" if disorder_us > least_us else "rows out of order"

    def laws_of(self, script: TestStream) -> Mapping[Law, Sequence[Any]]:
        """The law that an example breaks, with its arguments: of several the one that says most. None where all hold."""
        if self.broken is None:
            self.broken = self._broken(script)
        return {} if self.broken is None else {self.broken: self._arguments(self.broken, script)}

    def _broken(self, script: TestStream) -> Law | None:
        if not any(self._breaks(law, script) for law in self._asked(script)):
            return None
        first = [every_script_runs, *(_CAUSES if live_panes_equal_batch in self.applies else _CAUSES[:1])]
        return next((law for law in [*first, *self.applies] if self._breaks(law, script)), None)

    def _asked(self, script: TestStream) -> Iterator[Law]:
        """The laws that are tried: some not in each example, since they need another run."""
        for law in self.applies:
            if law is restart_is_irrelevant and self.compared[live_panes_equal_batch]:
                self.compared[law] = True  # the same rows in one batch, without a restart, gave the same
            elif law not in _SELDOM or law is restart_is_irrelevant or self._is_due(law):
                yield law

    def _is_due(self, law: Law) -> bool:
        """Whether a law has compared something in too few examples so far."""
        return self.report.held[law.__name__] * self.every <= self.report.examples

    def _breaks(self, law: Law, script: TestStream) -> bool:
        try:
            self.compared[law] = hold(law, *self._arguments(law, script))
        except LawError:
            return True
        return False

    def _arguments(self, law: Law, script: TestStream) -> Sequence[Any]:
        pipeline = Named(self.pipeline, "pipeline")
        how = [] if self.tolerance == TOLERANCE or "tolerance" not in signature(law).parameters else [self.tolerance]
        of = [Named(self.expected, _name(self.expected))] if law is live_panes_equal_expected else []
        return (pipeline, script, *of, *how)

    def smaller(self, arguments: Sequence[Any]) -> Iterator[Sequence[Any]]:
        """The arguments of a law with a shorter script."""
        pipeline, script, *others = arguments
        if any(source.form is not None for source in self.pipeline.flow.sources):
            return  # a change may need another one
        for shorter_script in shorter(script):
            if self.disorder is None or follows_its_rows(self.pipeline, shorter_script):
                yield (pipeline, shorter_script, *others)

    def count(self, script: TestStream) -> None:
        """Count an example that breaks no law."""
        given = outcome(self.pipeline, ended(self.pipeline, script), restarts=True)
        dropped = {"dropped rows": sum(sum(of.values()) for of in given.dropped)}
        self.report.add(facts(self.pipeline, script, given.output) | dropped)
        if self.compared[live_panes_equal_batch]:  # the script is in another order, in other batches, and restarted
            self.compared |= dict.fromkeys(_CAUSES, True)
        self.report.held.update(law.__name__ for law, compared in self.compared.items() if compared)
        self.compared.clear()
        if self.progress is not None:
            self.progress(self.report.examples)


def _name(expected: Any) -> str:
    return as_python(expected.text) if isinstance(expected, Query) else getattr(expected, "__name__", "expected")


def _check_own_parts(
    report: Report, flow: Flow, rows: Any, *, examples: int, seed: int, floor: float, tolerance: float
) -> None:
    """Check the accumulations and triggers that are not of beamish, by their own laws."""
    for below in flow.completed.flows:
        options = of_windows(below)
        if options is None:
            continue
        for accumulation in options.accumulations.values():
            values = _values(accumulation, below, rows)
            if values is not None:
                seen = check_accumulation(
                    accumulation,
                    values=values,
                    nulls=False,
                    tolerance=tolerance,
                    examples=examples,
                    seed=seed,
                    floor=floor,
                )
                report.held[f"check_accumulation({accumulation!r})"] = seen.examples
        for trigger in parts(options.trigger):
            if (
                isinstance(trigger, Trigger)
                and is_own(trigger)
                and type(trigger).should_fire is not Trigger.should_fire
            ):
                seen = check_trigger(
                    trigger,
                    allowed_lateness=options.allowed_lateness.us / 1e6,
                    merging=merges(below),
                    examples=examples,
                    seed=seed,
                    floor=floor,
                )
                report.held[f"check_trigger({trigger!r})"] = seen.examples


def _values(accumulation: Accumulation, flow: Flow, rows: Any) -> st.SearchStrategy[Any] | None:
    """Values that a custom accumulation reads from the rows; None: it is built in, or takes panes."""
    if not is_own(accumulation) or not accumulation.python or len(flow.inputs) != 1 or not takes_sources(flow):
        return None
    names = accumulation.inputs
    one: st.SearchStrategy[Any] = rows[flow.sources[0].name] if isinstance(rows, Mapping) else rows
    if names is None:
        return one
    return one.map(lambda row: row.get(names[0]) if len(names) == 1 else tuple(row.get(name) for name in names))
