"""Pipelines with several inputs.

``bm.merge`` windows them together, ``bm.as_of_join`` joins rows with a versioned table, ``bm.table_join`` two changing tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Never

import attrs

from beamish.contract.relation import Relation
from beamish.durations import DurationLike
from beamish.errors import ColumnError, PipelineError
from beamish.flow import Flow, Input, Panes
from beamish.kernels.column_names import PREFIX, is_reserved
from beamish.kinds.as_of.stage import AsOfStage
from beamish.kinds.table_join.options import How, read_table_join
from beamish.kinds.table_join.stage import TableJoinStage
from beamish.kinds.versions.options import AsOf, Direction, read_as_of
from beamish.kinds.window.stage import WindowStage
from beamish.modes import BOTH_INPUTS, WaitFor
from beamish.pipeline import Pipeline, only_takes, taken_by
from beamish.source import Source

_ARGUMENTS = ("self", "df", "shards", "initial", "schema", "streaming", "checkpoint", "fuse", "shard_by")
"""Arguments of ``apply`` besides the inputs' names."""


def merge(*unnamed: Never, **inputs: Pipeline) -> Pipeline:
    """Window several streams together: the rows of sources, and the panes of other pipelines.

    The merged watermark is the least of the inputs', and undefined until each has one: an input without data holds it back, and
    so does an idle one unless its watermark has an ``idle_timeout`` (docs/rules/time.md#idle-timeout, per input).
    Sessions merge across inputs, and triggers count the rows of all (Beam guide, "CoGroupByKey").

    The rows of an input that is a complete pipeline are its panes; its retractions retract them. If all inputs are such, with the
    same windows, the merge may omit its window: panes are then merged by their window.

    Args:
        unnamed: rejected: inputs are given by name.
        inputs: two or more pipelines that declare event time, keys and condition (``where``) only; or complete ones, keyed by
            their own keys unless they end in ``.then(bm.Pipeline().key_by(...))``. Keys must agree in number and type; the output
            has the names of the first input.

    Returns:
        a pipeline to continue with windows, trigger, and accumulations that name their input
        (``Sum("amount").of("orders")``, ``LeftOuterJoin("orders", "clicks")``; ``Count()`` counts the rows of all inputs).

    Raises:
        PipelineError: fewer than two inputs, one that declares too little or too much, or keys that do not agree.

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
                f"merge: {first.name} is keyed by {first.keys!r}, {other.name} by {other.keys!r}; key all inputs by the same number of columns, in the same order; to join a global total to the rows of each key, leave both without keys, a stage by .then(bm.Pipeline())"
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
    direction: Direction = "backward",
    as_of: AsOf = "event_time",
    **inputs: Pipeline,
) -> Pipeline:
    """Join each row with the version of a table that was valid at the row's own time (``pandas.merge_asof``, ``ASOF JOIN``, KIP-889).

    A row is emitted ON_TIME when the watermark is past its time by ``grace``, joined with the table as of the previous step; a
    row that is already due on arrival is joined at once, LATE. ``discarding()`` (the default) emits each row once;
    ``accumulating_and_retracting()`` stores rows until the watermark is the table's allowed lateness past them, and retracts and
    corrects rows when a later change alters their match. For several tables, join a join.

    Args:
        unnamed: rejected: inputs are given by name.
        on: the left input's columns to join on: a name, names, or ``{left column: key column}``; None: the table's keys by their
            own names. Null matches nothing: such a row of an inner join is dropped (``null_key``).
        how: "inner": a row without a match is not emitted; "left": it is emitted with null.
        tolerance: how far from the row's time the matching version may begin, at least 0; None: unlimited.
        grace: how far past a row the watermark must be before it is emitted, at least 0 and at most the history.
        early: rows are emitted EARLY on arrival; with retractions they are then corrected.
        wait_for: ``bm.BOTH_INPUTS``: the watermark is the least of both; ``bm.LEFT_INPUT``: the left input's only, for the
            table's history and lateness too.
        allow_exact_matches: whether a row matches a version that begins at its own time; otherwise the one valid a microsecond before.
        direction: "backward": the version valid at the row's time; "forward": the first that begins then or later; "nearest": the
            one of these two whose start is nearer, if equally near the earlier. The last two need a tolerance, for which rows wait.
        as_of: "event_time": the table as of the row's time; "arrival": each row is joined once, when it arrives, with its key's
            latest version then.
        inputs: two: the left, a pipeline that declares ``event_time`` and ``where`` only, or a complete one whose panes are
            joined at their timestamps; then the table, a pipeline that ends in ``versions(...)``.

    Returns:
        a pipeline whose rows are the left's columns, a struct named after the table (its values, ``valid_from``; null: no
        match), ``window`` (of the left pane), ``pane``, ``timestamp`` (of the left row). A later stage names fields of the
        struct: ``Sum("rates.rate")``.

    Raises:
        OptionError: an argument is invalid.
        PipelineError: not two inputs, one that declares too little or too much, or incompatible inputs.
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
        direction=direction,
        as_of=as_of,
    )
    if len(inputs) != 2:
        raise PipelineError(
            f"as_of_join({', '.join(inputs)}): needs two inputs, rows and then a table, such as as_of_join(orders=..., rates=...); "
            "for more tables nest joins"
        )
    _check_names("as_of_join", inputs)
    (left_name, left), (table_name, table) = inputs.items()
    versions = table.flow.stage.declared("versions") if isinstance(getattr(table, "flow", None), Flow) else None
    if versions is None:
        raise PipelineError(
            f"as_of_join({table_name}={table!r}): the second input must be a table: add .key_by(...).versions('1 day')"
        )
    if versions.with_dropped:
        raise PipelineError(
            f"as_of_join({table_name}=...): with_dropped() on the table; call it on the join, which lists the table's dropped rows too"
        )
    changes = table.flow.inputs[0].named(table_name)
    if not all(source.event_time is not None for source in changes.sources):
        raise PipelineError(
            f"as_of_join({table_name}={table!r}): no event time: add .event_time(column, bm.BoundedOutOfOrderness('30 seconds'))"
        )
    if isinstance(changes, Source):
        changes = attrs.evolve(changes, is_waited_for=options.wait_for is WaitFor.BOTH_INPUTS)
    rows = _rows_input("as_of_join", left_name, left)
    keys = _keys_on(on, changes.relation.keys, table_name)
    flow = Flow(AsOfStage(options, versions), (attrs.evolve(rows, keys=keys), changes))
    _check_sources("as_of_join", flow)
    return Pipeline(flow)


def table_join(
    *unnamed: Never, on: str | Iterable[str] | Mapping[str, str] | None = None, how: How = "inner", **inputs: Pipeline
) -> Pipeline:
    """Join two changing tables by any columns, and emit the changes of the joined rows.

    The columns need not be keys of either table (a foreign-key join of Kafka Streams' KTables, a regular join in Flink). After every step the
    live rows are the join of the rows that are live in both inputs; a changed row touches only its own pairs. ``forget_after`` after it bounds
    how long rows are stored.

    Args:
        unnamed: rejected: inputs are given by name.
        on: the columns to join on: a name, names, or ``{column of the first input: column of the second}``; None: the key columns of the
            second, under these names in the first. Null matches nothing.
        how: "inner": pairs only; "left", "right", "outer": rows of the first input, of the second, or of both, without a match too, with null.
        inputs: two: complete pipelines, whose retractions remove the rows that they retract, such as those that end in ``upserts(...)``;
            or pipelines that declare ``event_time``, ``where`` and ``from_changelog`` only.

    Returns:
        a pipeline whose rows are the joined columns, under the first input's names, a struct per input with its columns (null: no match),
        ``window`` (null), ``pane`` (timing UNKNOWN, index 0), ``timestamp`` (the later one of both rows). A later stage names fields of a struct:
        ``Sum("orders.amount")``.

    Raises:
        OptionError: an argument is invalid.
        PipelineError: not two inputs, one that declares too little or too much, or whose rows replace others without a retraction.
        ColumnError: ``on`` does not name columns.

    Example:
        >>> import beamish as bm
        >>> start = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0))
        >>> joined = bm.table_join(
        ...     orders=start.key_by("order").upserts(),
        ...     customers=start.key_by("name").upserts(),
        ...     on={"buyer": "name"},
        ... )
        >>> script = (
        ...     bm.testing.TestStream()
        ...     .add([{"ts": 1, "name": "ann", "city": "Rome"}, {"ts": 1, "name": "bob", "city": "Oslo"}], input="customers")
        ...     .add([{"ts": 2, "order": 7, "buyer": "ann"}], input="orders")
        ...     .add([{"ts": 3, "order": 7, "buyer": "bob"}], input="orders")
        ... )
        >>> [(str(pane.change), pane.key["buyer"], pane.values["customers"]["city"]) for pane in joined.run(script)]
        [('INSERT', 'ann', 'Rome'), ('DELETE', 'ann', 'Rome'), ('INSERT', 'bob', 'Oslo')]
    """
    _check_named("table_join", unnamed)
    options = read_table_join(how)
    if len(inputs) != 2:
        raise PipelineError(
            f"table_join({', '.join(inputs)}): needs two inputs, such as table_join(orders=..., customers=..., on={{'buyer': 'name'}}); for more tables nest joins"
        )
    _check_names("table_join", inputs)
    left, right = (_rows_input("table_join", name, pipeline) for name, pipeline in inputs.items())
    pairs = _columns_on(on, right.relation)
    taken = (attrs.evolve(left, keys=tuple(pairs)), attrs.evolve(right, keys=tuple(pairs.values())))
    flow = Flow(TableJoinStage(options), taken)
    _check_sources("table_join", flow)
    flow.stage.check(flow.takes)
    return Pipeline(flow)


def _columns_on(on: Any, right: Relation) -> dict[str, str]:
    """The columns of the first input, each with that of the second (ColumnError: it does not name columns)."""
    pairs = _on_mapping("table_join", on, right.keys)
    if not pairs or not all(isinstance(name, str) for name in pairs):
        raise ColumnError(
            f"table_join(on={on!r}): there is no column to join on, such as a key column of {right.name}; name columns: on={{'buyer': 'name'}}"
        )
    if len(set(pairs.values())) < len(pairs):
        raise ColumnError(f"table_join(on={on!r}): a column of {right.name} is named twice; name each once")
    return pairs


def _rows_input(call: str, name: str, pipeline: object) -> Input:
    """An input that is not keyed by itself."""
    taken = _input(name, pipeline, call)
    if isinstance(taken, Source) and taken.keys:
        of = "the left input" if call == "as_of_join" else "an input of rows"
        raise PipelineError(
            f"{call}({name}={pipeline!r}): {of} may declare only its event_time; declare the columns to join on with on=..."
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
    named = _on_mapping("as_of_join", on, keys)
    if sorted(named.values()) != sorted(keys):
        raise ColumnError(
            f"as_of_join(on={on!r}): must name all keys of {table}, {list(keys)!r}, once each; such as "
            f"on={dict(zip([f'my_{key}' for key in keys], keys, strict=True))!r}"
        )
    of_key = {key: name for name, key in named.items()}
    return tuple(of_key[key] for key in keys)


def _on_mapping(call: str, on: Any, keys: tuple[str, ...]) -> dict[str, str]:
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
        raise ColumnError(f"{call}(on={on!r}): must be column names, or {{left column: key column}}")
    return pairs


def _check_named(call: str, unnamed: Sequence[Any]) -> None:
    if unnamed:
        raise PipelineError(
            f"{call}(...) with {len(unnamed)} unnamed inputs: name each: {call}(orders=..., clicks=...); accumulations and apply(orders=df, ...) use these names"
        )


def _check_names(call: str, names: Iterable[str]) -> None:
    """Check the names of inputs.

    They must differ ignoring case, since in Spark they are fields of dropped rows and of joined pairs.
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
            raise PipelineError(f"{call}: inputs {other!r} and {name!r}: Spark ignores case; rename one")


def _check_sources(call: str, flow: Flow) -> None:
    """Check that source names are unique, since DataFrames are passed by source name."""
    names = [source.name for source in flow.sources]
    for name in names:
        if names.count(name) > 1:
            raise PipelineError(
                f"{call}: two sources are called {name!r}; rename one, since DataFrames are passed by source name"
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
            f"{call}({name}={pipeline!r}): no event time: add .event_time(column, bm.BoundedOutOfOrderness('30 seconds'))"
        )
    if is_rows:
        return taken_by(flow).named(name)
    if not flow.stage.is_complete:
        rest = "on the merge: bm.merge(...).window(...).accumulate(...)" if merges else "in a stage after: .then(...)"
        raise PipelineError(
            f"{call}({name}={pipeline!r}): an input declares its event_time{', key_by' * merges} and where only, or is a complete pipeline with accumulations; declare the rest {rest}"
        )
    flow.check()
    panes = Panes(flow).named(name)
    panes.check()
    return panes
