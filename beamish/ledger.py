"""Panes as changes of a table: ``bm.changelog`` and ``bm.live``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from beamish.addresses import printable
from beamish.errors import ColumnError, OptionError
from beamish.instants import InstantLike, instant_us
from beamish.pane import Pane, PaneChange, PaneKind, PaneList, PaneTiming

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Format: TypeAlias = Literal["spark", "delta-cdf", "flink", "debezium", "upsert", "kafka", "diff"]
Written: TypeAlias = "Literal['json'] | Callable[[Column], Column]"


def changelog(
    panes: DataFrame,
    format: Format = "spark",  # noqa: A002 - as Spark calls it
    *,
    codes: Literal["long", "short"] = "long",
    fields: Sequence[str] = (),
    keys: Sequence[str] | None = None,
    key_format: Written = "json",
    value_format: Written = "json",
) -> DataFrame:
    """Panes as a changelog in another system's format: a lazy DataFrame, of a running query or of a stored table of panes.

    The data columns are the keys, ``window`` if it has bounds, and the values. Dropped rows are left out.

    Args:
        panes: the output of ``pipeline.apply``, or a table of it.
        format: the output format (docs/rules/changelogs.md#changelogs):

            - ``"spark"``, or ``"delta-cdf"``: ``_change_type`` (insert, update_preimage, update_postimage, delete), the data;
            - ``"flink"``: ``op`` (INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE), the data;
            - ``"debezium"``: ``op`` (c, u, d), ``before``, ``after`` (structs of the data), ``ts_ms``; a row for each change;
            - ``"upsert"``: the data, flat (``window_start``, ``window_end``), ``_sequence``, ``_deleted``; without the old values;
            - ``"kafka"``: ``key``, ``value`` (null: a tombstone), from the rows of ``"upsert"``;
            - ``"diff"``: the data, ``_diff`` (+1, -1).
        codes: for ``"flink"``: ``"short"`` for ``op`` in its short form: +I, -U, +U, -D.
        fields: fields of the pane to append as columns: ``timing``, ``index``, ``on_time_index``,
            ``is_first``, ``is_last``, ``sequence``, ``watermark`` (as ``pane_timing`` and so on) and ``timestamp``.
        keys: the columns that, with the window, identify a row; default: the key columns, for versions also ``valid_from``.
            Required for joined rows in formats that need it.
        key_format, value_format: for ``"kafka"``: ``"json"``, or a function that converts the struct to a column.

    Returns:
        the columns of the format, a row for each change (``"debezium"``, ``"upsert"``, ``"kafka"``) or image (the others).

    Raises:
        OptionError: an option is invalid.
        ColumnError: ``panes`` are not panes, or lack ``pane.change``; a column name is reserved by the format; or rows have no identity.
        PipelineError: the pipeline's panes lack what the format needs: discarding in ``"upsert"`` and ``"kafka"``, accumulating
            in ``"diff"`` and over merging windows.

    Example:
        ``bm.changelog(events.transform(pipeline), "kafka").writeStream.format("kafka")...``
    """
    from beamish.spark.changelog.formats import changelog as make

    _check_dataframe("changelog", panes)
    return make(panes, format, codes, fields, keys, key_format, value_format)


@overload
def live(panes: DataFrame, *, keys: Sequence[str] | None = None, as_of: InstantLike | None = None) -> DataFrame: ...
@overload
def live(panes: Iterable[Pane], *, as_of: InstantLike | None = None) -> list[Pane]: ...
def live(panes: Any, *, keys: Sequence[str] | None = None, as_of: InstantLike | None = None) -> Any:
    """Live panes: emitted, and neither retracted nor replaced.

    For sessions and other merging windows the pipeline must be ``accumulating_and_retracting()``. With ``accumulating()`` a
    merged session is not retracted, so in a list, and in a table without column metadata, it stays live.

    Args:
        panes: a batch DataFrame of panes, such as a stored table of them; or the rows of a test, from the first one on.
        keys: of a DataFrame: the columns that, with the window, identify a row; default: as for ``bm.changelog``.
        as_of: the panes live when the watermark was last at or before this time (``pane.watermark``); an aware datetime or
            seconds since the epoch. None: after all rows.

    Returns:
        for a DataFrame a lazy one with its columns, without ``dropped``; for a list a list, in order.

    Raises:
        ColumnError: ``panes`` are not panes, or lack ``pane.change`` or ``pane.watermark``.
        OptionError: a list that does not begin with the first pane, so that a retraction has no match; ``as_of`` is not a time.
        PipelineError: the DataFrame streams; or its pipeline is known to be accumulating over merging windows.

    Example:
        ``bm.live(pipeline.run(script))``
    """
    as_of_us = None if as_of is None else instant_us("live(as_of)", as_of, OptionError)
    if isinstance(panes, Iterable) and not hasattr(panes, "sparkSession"):
        rows = list(map(_checked_pane, panes))
        return _live(rows if as_of_us is None else [pane for pane in rows if _is_by(pane, as_of_us)])
    from beamish.spark.changelog.formats import live as find

    _check_dataframe("live", panes)
    return find(panes, keys, as_of_us)


def _checked_pane(row: Any) -> Pane:
    if not isinstance(row, Pane):
        raise ColumnError(
            f"live([{printable(row)}, ...]): must be rows of pipeline.run(script), or a DataFrame of panes"
        )
    return row


def _check_dataframe(call: str, panes: Any) -> None:
    if not hasattr(panes, "sparkSession"):
        raise OptionError(f"{call}({printable(panes)}): must be a DataFrame of panes, as pipeline.apply returns it")


def _is_by(pane: Pane, as_of_us: int) -> bool:
    """Whether a row was emitted before the watermark passed a time in microseconds."""
    return pane.watermark is None or instant_us("pane.watermark", pane.watermark) <= as_of_us


def _live(panes: Iterable[Pane]) -> PaneList:
    """Fold rows in order, by their changes."""
    rows: dict[str, list[tuple[int, Pane]]] = {}
    before: dict[str, PaneChange | None] = {}
    for number, pane in enumerate(panes):
        if pane.kind is PaneKind.DROPPED:
            continue
        key = repr(sorted(pane.key.items()))
        of_slot = rows.setdefault(repr((key, pane.window)), [])
        of_changes = pane.timing is PaneTiming.UNKNOWN
        if of_changes and pane.change is not PaneChange.INSERT:  # an upsert or delete of its slot
            of_slot.clear()
        elif pane.kind is PaneKind.RETRACTION:
            _take_back(of_slot, pane)
        elif pane.change is PaneChange.UPDATE_AFTER and before.get(key) is not PaneChange.UPDATE_BEFORE:
            of_slot[:] = [one for one in of_slot if one[1].index == pane.index]  # exploded rows of a pane stay together
        if pane.kind is PaneKind.PANE:
            of_slot.append((number, pane))
        before[key] = pane.change
    found = sorted((one for of_slot in rows.values() for one in of_slot), key=lambda one: one[0])
    return PaneList(pane for _, pane in found)


def _take_back(of_slot: list[tuple[int, Pane]], pane: Pane) -> None:
    words = _words(pane)
    for at, (_, other) in enumerate(of_slot):
        if _words(other) == words:
            del of_slot[at]
            return
    raise OptionError(f"live({pane}): no live pane equals it; pass all rows from the first one, in order")


def _words(pane: Pane) -> str:
    """The fields that a retraction shares with its pane."""
    return repr((pane.values, pane.timing, pane.index, pane.on_time_index, pane.is_first, pane.timestamp))
