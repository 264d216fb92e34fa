"""Panes as changes of a table: in the words of other systems, and what is live of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from beamish.addresses import printable
from beamish.errors import OptionError
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
    """Panes as a changelog in the words of another system: a lazy DataFrame, of a running query or of a stored table of panes.

    The data columns are the keys, ``window`` where it has bounds, and the values. Dropped rows are left out.

    Args:
        panes: what ``pipeline.apply`` gave, or a table of it.
        format: what comes out (docs/rules/changelogs.md#changelogs):

            - ``"spark"``, or ``"delta-cdf"``: ``_change_type`` (insert, update_preimage, update_postimage, delete), the data;
            - ``"flink"``: ``op`` (INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE), the data;
            - ``"debezium"``: ``op`` (c, u, d), ``before``, ``after`` (structs of the data), ``ts_ms``; a row for each change;
            - ``"upsert"``: the data, flat (``window_start``, ``window_end``), ``_sequence``, ``_deleted``; without what was before;
            - ``"kafka"``: ``key``, ``value`` (null: a tombstone), of the rows of ``"upsert"``;
            - ``"diff"``: the data, ``_diff`` (+1, -1).
        codes: for ``"flink"``: ``"short"`` has ``op`` in its short form: +I, -U, +U, -D.
        fields: what comes of the pane beside the data, as columns after it: of ``timing``, ``index``, ``on_time_index``,
            ``is_first``, ``is_last``, ``sequence``, ``watermark`` (as ``pane_timing`` and so on) and ``timestamp``.
        keys: the columns that, with the window, say which row one is; default: the key columns, of versions also
            ``valid_from``. Of joined rows it must be said, where it matters.
        key_format, value_format: for ``"kafka"``: ``"json"``, or a function that makes a column of the struct.

    Returns:
        the columns of the format, a row for each change (``"debezium"``, ``"upsert"``, ``"kafka"``) or image (the others).

    Raises:
        OptionError: an option is none of these.
        ColumnError: ``panes`` are none, or were written before rows said what they do; a column has a name of the format's;
            or nothing says which row one is.
        PipelineError: the pipeline's panes do not tell what the format needs: discarding in ``"upsert"`` and ``"kafka"``,
            accumulating in ``"diff"`` and over windows that merge.

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
    """The panes that are live: given, and neither taken back nor replaced.

    Of sessions, and other windows that merge, the pipeline must be ``accumulating_and_retracting()``. Under ``accumulating()`` nothing says
    that a session merged away, so a list, and a table that does not keep the metadata of columns, have it as live still.

    Args:
        panes: a batch DataFrame of panes, such as a stored table of them; or the rows of a test, from the first one on.
        keys: of a DataFrame: the columns that, with the window, say which row one is; default: as for ``bm.changelog``.
        as_of: what was live when the watermark last stood at this time or before it (``pane.watermark``); an aware datetime
            or seconds since the epoch. None: what is live after all rows.

    Returns:
        of a DataFrame a lazy one with its columns, but for ``dropped``; of a list a list, in order.

    Raises:
        ColumnError: ``panes`` are none, or were written before rows said what they do, or where the watermark stood.
        OptionError: a list in which a row takes one back that is not there, since it does not begin with the first; ``as_of`` is no
            time.
        PipelineError: the DataFrame streams; or it is known that its pipeline is accumulating over windows that merge.

    Example:
        ``bm.live(pipeline.run(script))``
    """
    as_of_us = None if as_of is None else instant_us("live(as_of)", as_of, OptionError)
    if isinstance(panes, Iterable) and not hasattr(panes, "sparkSession"):
        return _live(panes if as_of_us is None else [pane for pane in panes if _is_by(pane, as_of_us)])
    from beamish.spark.changelog.live import live as find

    _check_dataframe("live", panes)
    return find(panes, keys, as_of_us)


def _check_dataframe(call: str, panes: Any) -> None:
    if not hasattr(panes, "sparkSession"):
        raise OptionError(f"{call}({printable(panes)}): must be a DataFrame of panes, as pipeline.apply gives it")


def _is_by(pane: Pane, as_of_us: int) -> bool:
    """Whether a row came out when the watermark was not past a time, microseconds."""
    return pane.watermark is None or instant_us("pane.watermark", pane.watermark) <= as_of_us


def _live(panes: Iterable[Pane]) -> PaneList:
    """Fold rows in order: each says what it does."""
    rows: dict[str, list[tuple[int, Pane]]] = {}
    before: dict[str, PaneChange | None] = {}
    for number, pane in enumerate(panes):
        if pane.kind is PaneKind.DROPPED:
            continue
        key = repr(sorted(pane.key.items()))
        of_slot = rows.setdefault(repr((key, pane.window)), [])
        of_changes = pane.timing is PaneTiming.UNKNOWN
        if of_changes and pane.change is not PaneChange.INSERT:  # it sets or deletes its slot, whatever that held
            of_slot.clear()
        elif pane.kind is PaneKind.RETRACTION:
            _take_back(of_slot, pane)
        elif pane.change is PaneChange.UPDATE_AFTER and before.get(key) is not PaneChange.UPDATE_BEFORE:
            of_slot[:] = [one for one in of_slot if one[1].index == pane.index]  # rows of one pane stay together
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
    raise OptionError(
        f"live({pane}): nothing that is live equals it; give all rows, from the first one on, in their order"
    )


def _words(pane: Pane) -> str:
    """What a retraction has in common with the pane that it takes back."""
    return repr((pane.values, pane.timing, pane.index, pane.on_time_index, pane.is_first, pane.timestamp))
