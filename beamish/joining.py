"""Several inputs in one pipeline: ``bm.merge`` windows them together, ``bm.as_of_join`` joins rows with a versioned table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Never

import attrs

from beamish.durations import DurationLike
from beamish.errors import ColumnError, PipelineError
from beamish.flow import Flow, Input, Panes
from beamish.kernels.reserved import PREFIX, is_reserved
from beamish.kinds.as_of.stage import AsOfStage
from beamish.kinds.versions.options import read_as_of
from beamish.kinds.window.stage import WindowStage
from beamish.modes import BOTH_INPUTS, WaitFor
from beamish.pipeline import Pipeline, only_takes, taken_by
from beamish.source import Source

_ARGUMENTS = ("self", "df", "shards", "initial", "schema", "streaming", "checkpoint")
"""Those of ``apply``, beside which inputs are given by their names."""


def merge(*unnamed: Never, **inputs: Pipeline) -> Pipeline:
    """Window several streams together: the rows of sources, and the panes of other pipelines.

    The merged watermark is the least of the inputs', and none until each has one: an input without data holds it
    back, and one that falls quiet does so unless its watermark has an ``idle_timeout`` (docs/rules/time.md#idle-timeout,
    for each input by itself). Sessions merge across inputs, and triggers count the rows of all (Beam guide,
    "CoGroupByKey").

    An input that is a whole pipeline brings its panes as rows, and takes them back by its retractions. Where all inputs
    do, and have the same windows, the merge may leave its window out: panes then meet in their window.

    Args:
        unnamed: refused: an input is given under a name.
        inputs: two or more: a pipeline that says its event time, what it is keyed by and which rows it takes (``where``); or a
            whole one, which is keyed by its own keys unless ``.then(bm.Pipeline().key_by(...))`` ends it. Keys must
            agree in number and type; the output calls them as the first input does.

    Returns:
        a pipeline to go on with: windows, trigger, and accumulations that say whose rows they take
        (``Sum("amount").of("orders")``, ``LeftOuterJoin("orders", "clicks")``; ``Count()`` counts the rows of all).

    Raises:
        PipelineError: fewer than two inputs, or one that says too little or too much, or the keys do not agree.

    Example:
        >>> import beamish as bm
        >>> from beamish.accumulations import Count, Sum
        >>> both = (
        ...     bm.merge(
        ...         orders=bm.Pipeline().event_time("ordered_at", bm.BoundedOutOfOrderness(5)).key_by("user"),
        ...         clicks=bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("uid"),
        ...     )
        ...     .window(bm.FixedWindows(60))
        ...     .accumulate(spent=Sum("amount").of("orders"), clicks=Count().of("clicks"))
        ... )
        >>> script = (
        ...     bm.testing.TestStream()
        ...     .add([{"ordered_at": 3, "user": "ann", "amount": 10}], input="orders")
        ...     .add([{"ts": 2, "uid": "ann"}, {"ts": 4, "uid": "ann"}], input="clicks")
        ...     .advance_watermark_to(60, input="clicks")
        ...     .advance_watermark_to(61, input="orders")
        ... )
        >>> [pane.values for pane in both.run(script)]
        [{'spent': 10, 'clicks': 2}]
    """
    _check_named("merge", unnamed)
    if len(inputs) < 2:
        raise PipelineError(
            f"merge({', '.join(inputs)}): needs two inputs or more, such as merge(orders=..., clicks=...)"
        )
    _check_names("merge", inputs)
    flow = Flow(WindowStage(), tuple(_input(name, pipeline) for name, pipeline in inputs.items()))
    _check_sources("merge", flow)
    first, *others = flow.takes
    for other in others:
        if len(other.keys) != len(first.keys):
            raise PipelineError(
                f"merge: {first.name} is keyed by {first.keys!r}, {other.name} by {other.keys!r}; key all inputs by as many "
                "columns, in the same order; to bring a total over all keys to the rows of each, key both by none, a stage by "
                ".then(bm.Pipeline()), and join them"
            )
    return Pipeline(flow)


def as_of_join(
    *unnamed: Never,
    on: str | Iterable[str] | Mapping[str, str] | None = None,
    how: str = "inner",
    tolerance: DurationLike | None = None,
    grace: DurationLike = 0,
    early: bool = False,
    wait_for: WaitFor = BOTH_INPUTS,
    allow_exact_matches: bool = True,
    **inputs: Pipeline,
) -> Pipeline:
    """Join each row with what a versioned table held at the row's own time (``pandas.merge_asof``, ``ASOF JOIN``, KIP-889).

    A row comes out, ON_TIME, when the watermark is past its time by ``grace``, with what the table knew before that step;
    one that is due as it comes is joined at once, LATE. ``discarding()`` (the default) gives each row once;
    ``accumulating_and_retracting()`` keeps rows until the watermark is the table's allowed lateness past them, and takes
    back and corrects what a later change made wrong. Two, three and more tables: join a join.

    Args:
        unnamed: refused: an input is given under a name.
        on: the left input's columns that name a key of the table: a name, names, or ``{left column: key column}``; None: the
            table's keys by their own names. Null matches nothing.
        how: "inner": a row without a match gives no row; "left": it comes out with null.
        tolerance: how long before a row the version that it meets may have begun, at least 0; None: ever so long.
        grace: how far past a row the watermark must be before it comes out, at least 0 and at most the history.
        early: rows come out as they come, EARLY; with retractions they are then corrected.
        wait_for: ``bm.BOTH_INPUTS``: the watermark is the least of both; ``bm.LEFT_INPUT``: the left's alone, for the table's
            history and lateness too.
        allow_exact_matches: whether a row meets a version that begins at its own time; else one that was valid a
            microsecond before.
        inputs: two: the left, a pipeline that says ``event_time`` and ``where`` only, or a whole one whose panes are joined at
            their timestamps; then the table, a pipeline that ends in ``versions(...)``.

    Returns:
        a pipeline whose rows are the left's columns, a struct named after the table (its values, ``valid_from``; null: no
        match), ``window`` (of the left pane), ``pane``, ``timestamp`` (of the left row).

    Raises:
        OptionError: one of the arguments is wrong.
        PipelineError: not two inputs, one that says too little or too much, or they do not go together.
        ColumnError: ``on`` does not name the table's keys.

    Example:
        >>> import beamish as bm
        >>> priced = bm.as_of_join(
        ...     orders=bm.Pipeline().event_time("ordered", bm.BoundedOutOfOrderness(0)),
        ...     rates=bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("currency").versions("1 day"),
        ...     on={"paid_in": "currency"},
        ... )
        >>> script = (
        ...     bm.testing.TestStream()
        ...     .add([{"ts": 10, "currency": "EUR", "rate": 1.1}, {"ts": 30, "currency": "EUR", "rate": 1.3}], input="rates")
        ...     .add([{"ordered": 25, "paid_in": "EUR", "amount": 5}], input="orders")
        ...     .advance_watermark_to(26)
        ... )
        >>> [(pane.values["amount"], pane.values["rates"]["rate"]) for pane in priced.run(script)]
        [(5, 1.1)]
    """
    _check_named("as_of_join", unnamed)
    options = read_as_of(
        how=how,
        tolerance=tolerance,
        grace=grace,
        early=early,
        wait_for=wait_for,
        allow_exact_matches=allow_exact_matches,
    )
    if len(inputs) != 2:
        raise PipelineError(
            f"as_of_join({', '.join(inputs)}): takes two inputs, rows and then a table, such as as_of_join(orders=..., "
            "rates=...); join a join for a further table"
        )
    _check_names("as_of_join", inputs)
    (left_name, left), (table_name, table) = inputs.items()
    versions = table.flow.stage.declared("versions") if isinstance(getattr(table, "flow", None), Flow) else None
    if versions is None:
        raise PipelineError(
            f"as_of_join({table_name}={table!r}): the second input must be a table: say .key_by(...).versions('1 day') of it"
        )
    if versions.with_dropped:
        raise PipelineError(
            f"as_of_join({table_name}=...): with_dropped() of the table; say it of the join, which lists the table's too"
        )
    changes = table.flow.inputs[0].named(table_name)
    if not all(source.event_time is not None for source in changes.sources):
        raise PipelineError(
            f"as_of_join({table_name}={table!r}): no event time: say .event_time(column, bm.BoundedOutOfOrderness('30 seconds'))"
        )
    if isinstance(changes, Source):
        changes = attrs.evolve(changes, is_waited_for=options.wait_for is WaitFor.BOTH_INPUTS)
    rows = _left(left_name, left)
    keys = _keys_on(on, changes.relation.keys, table_name)
    flow = Flow(AsOfStage(options, versions), (attrs.evolve(rows, keys=keys), changes))
    _check_sources("as_of_join", flow)
    return Pipeline(flow)


def _left(name: str, pipeline: object) -> Input:
    taken = _input(name, pipeline, "as_of_join")
    if isinstance(taken, Source) and taken.keys:
        raise PipelineError(
            f"as_of_join({name}={pipeline!r}): the left input says its event_time only; by which columns it meets the table is "
            "said by on=..."
        )
    return taken


def _keys_on(on: Any, keys: tuple[Any, ...], table: str) -> tuple[str, ...]:
    """The left input's columns, in the order of the table's keys."""
    for key in keys:
        if not isinstance(key, str):
            raise ColumnError(
                f"as_of_join({table}=...): key_by({key}): a table's keys are names of columns; add the column before: "
                "df.withColumn(...)"
            )
    named = _on_mapping(on, keys)
    if sorted(named.values()) != sorted(keys):
        raise ColumnError(
            f"as_of_join(on={on!r}): must name all keys of {table}, {list(keys)!r}, once each; such as "
            f"on={dict(zip([f'my_{key}' for key in keys], keys, strict=True))!r}"
        )
    of_key = {key: name for name, key in named.items()}
    return tuple(of_key[key] for key in keys)


def _on_mapping(on: Any, keys: tuple[str, ...]) -> dict[str, str]:
    if on is None:
        return {key: key for key in keys}
    if isinstance(on, str):
        return {on: on}
    pairs: dict[Any, Any] = dict(on) if isinstance(on, Mapping) else {}
    if isinstance(on, Iterable) and not isinstance(on, Mapping):
        pairs = {name: name for name in on}
    if not isinstance(on, Iterable) or not all(
        isinstance(name, str) and name for pair in pairs.items() for name in pair
    ):
        raise ColumnError(f"as_of_join(on={on!r}): must be names of columns, or {{left column: key column}}")
    return pairs


def _check_named(call: str, unnamed: Sequence[Any]) -> None:
    if unnamed:
        raise PipelineError(
            f"{call}(...) with {len(unnamed)} inputs without a name: name each: {call}(orders=..., clicks=...); accumulations and "
            "apply(orders=df, ...) call them so"
        )


def _check_names(call: str, names: Iterable[str]) -> None:
    """Check the names of inputs.

    They must differ for Spark too, where they are fields of dropped rows and of joined pairs.
    """
    spelled: dict[str, str] = {}
    for name in names:
        if is_reserved(name) or not name.isidentifier():
            raise PipelineError(
                f"{call}({name}=...): must be a plain name that does not begin with {PREFIX!r}; choose another"
            )
        if name in _ARGUMENTS:
            raise PipelineError(f"{call}({name}=...): apply has an argument of this name; choose another for the input")
        other = spelled.setdefault(name.lower(), name)
        if other != name:
            raise PipelineError(
                f"{call}: inputs {other!r} and {name!r}: Spark does not tell upper from lower case; rename one"
            )


def _check_sources(call: str, flow: Flow) -> None:
    """A DataFrame is given by the name of its source."""
    names = [source.name for source in flow.sources]
    for name in names:
        if names.count(name) > 1:
            raise PipelineError(
                f"{call}: two sources are called {name!r}; rename one, since a DataFrame is given by its name"
            )


def _input(name: str, pipeline: object, call: str = "merge") -> Input:
    merges = call == "merge"
    if not isinstance(pipeline, Pipeline):
        raise PipelineError(
            f"{call}({name}={pipeline!r}): must be a pipeline, such as bm.Pipeline().event_time('ts', "
            f"bm.BoundedOutOfOrderness('30 seconds')){'.key_by(...)' * merges}"
        )
    flow = pipeline.flow
    is_rows = len(flow.inputs) == 1 and only_takes(flow)
    if flow.sources[0].event_time is None and not (merges and is_rows):
        raise PipelineError(
            f"{call}({name}={pipeline!r}): no event time: say .event_time(column, bm.BoundedOutOfOrderness('30 seconds'))"
        )
    if is_rows:
        return taken_by(flow).named(name)
    if not flow.stage.is_complete:
        rest = "of the merge: bm.merge(...).window(...).accumulate(...)" if merges else "in a stage after: .then(...)"
        raise PipelineError(
            f"{call}({name}={pipeline!r}): an input says its event_time{', key_by' * merges} and where only, or is a whole pipeline with "
            f"accumulations; say the rest {rest}"
        )
    flow.check()
    panes = Panes(flow).named(name)
    panes.check()
    return panes
