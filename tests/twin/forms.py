"""Input forms (rules/changelogs.md#from-changelog), and retractions of missing rows (#unmatched-removals)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from beamish import accumulations as a
from beamish.forms import FromChangelog, FromPanes
from beamish.source import Source
from tests.declared_options import StageOptions
from tests.twin.accumulations import Row
from tests.twin.order import same, spark_order


def unfolded(source: Source, rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """Data rows, and whether each is a retraction; one for each key set (rules/key-sets.md)."""
    for row, removes in _data(source, rows):
        if source.key_sets is None:
            yield row, removes
            continue
        columns = source.key_sets.columns
        for kept in source.key_sets.sets:
            id_ = int("".join("01"[name not in kept] for name in columns), 2)
            nulls = {name: None for name in columns if name not in kept}
            yield {**row, **nulls, "grouping_id": id_}, removes


def _data(source: Source, rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], bool]]:
    for row in rows:
        match source.form:
            case None:
                yield row, False
            case FromPanes():
                bounds = {f"window_{name}": (row["window"] or {}).get(name) for name in ("start", "end")}
                data: dict[str, Any] = {}
                for name, value in row.items():
                    data |= bounds if name == "window" else {name: value}
                if row["pane"]["kind"] != "DROPPED":
                    yield without(data, "pane", "dropped"), row["pane"]["kind"] == "RETRACTION"
            case FromChangelog(format="spark" | "delta-cdf"):
                yield without(row, "_change_type"), row["_change_type"] in ("delete", "update_preimage")
            case FromChangelog(format="flink"):
                yield without(row, "op"), row["op"] in ("-D", "-U", "DELETE", "UPDATE_BEFORE")
            case FromChangelog(format="debezium"):
                op = row["op"] or ""  # a tombstone has none
                if op in ("u", "d"):
                    yield row["before"], True
                if op in ("c", "r", "u"):
                    yield row["after"], False
            case FromChangelog(format="diff"):
                for _ in range(abs(row["_diff"])):
                    yield without(row, "_diff"), row["_diff"] < 0


def without(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


def kept_columns(options: StageOptions, row: Mapping[str, Any]) -> list[Sequence[str]]:
    """The columns read by each accumulation that stores the rows of a window."""
    return [
        accumulation.inputs if accumulation.inputs is not None else tuple(row)
        for accumulation in options.accumulations.values()
        if not subtracts(accumulation, row)
    ]


def subtracts(accumulation: a.Accumulation, row: Mapping[str, Any]) -> bool:
    """rules/stages.md#retractions-as-rows: counts, sums and means of whole numbers and decimals."""
    if isinstance(accumulation, a.Count):
        return True
    return isinstance(accumulation, (a.Sum, a.Mean)) and not isinstance(row[accumulation.column], float)


def unmatched(options: StageOptions, held: Sequence[Row], rows: Sequence[Row], removals: Sequence[Row]) -> list[Row]:
    """The retractions without a matching row in a window or bundle: among equals the last ones."""
    in_order = sorted(removals, key=lambda row: (row.time_us, [spark_order(value) for value in row.values.values()]))
    whole = lambda row: [tuple(row.values)]  # noqa: E731
    if not left_over([*held, *rows], in_order, whole):
        return []
    if options.on_error == "drop":  # rules/output.md#errors-removals: by whole rows
        return left_over([*held, *rows], in_order, whole)
    return left_over([*held, *rows], in_order, lambda row: kept_columns(options, row.values))


def left_over(rows: list[Row], removals: Sequence[Row], columns: Callable[[Row], list[Sequence[str]]]) -> list[Row]:
    """The retractions without a row equal in these columns, and in its time if there are any."""
    left, found = list(rows), []
    for removal in removals:
        names = columns(removal)
        equal = [i for i, one in enumerate(left) if all(alike(one, removal, of_one) for of_one in names)]
        if equal:
            del left[equal[0]]
        else:
            found.append(removal)
    return found


def alike(one: Row, other: Row, names: Sequence[str]) -> bool:
    return one.time_us == other.time_us and all(same(one.values.get(name), other.values.get(name)) for name in names)
