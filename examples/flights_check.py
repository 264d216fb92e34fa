"""The expected live panes and dropped rows, in plain pandas.

Independent of beamish and of Spark's windows and watermarks. The ledger (docs/rules/panes.md#ledger): each RETRACTION cancels an
equal PANE; the remaining, live panes equal a batch computation over the rows that were not dropped, one per key and window.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

Problems = list[str]

HOUR = pd.Timedelta(hours=1)


def live_panes(panes: pd.DataFrame, keys: Sequence[str]) -> tuple[pd.DataFrame, Problems]:
    """The live panes, and problems of the ledger.

    ``panes`` has the columns ``kind``, ``timing``, ``index`` and the like, ``start``, ``end``, the keys and values.
    """
    problems: Problems = []
    entry = [column for column in panes.columns if column not in ("kind", "change", "sequence", "watermark")]
    sign = panes["kind"].map({"PANE": 1, "RETRACTION": -1})
    count = panes.assign(sign=sign).groupby(entry, dropna=False, as_index=False)["sign"].sum()
    unmatched = int((count["sign"] < 0).sum())
    if unmatched:
        problems.append(f"{unmatched} retractions take back a pane that is not there")
    live = count[count["sign"] > 0].drop(columns="sign")
    twice = int(live.duplicated([*keys, "start", "end"]).sum())
    if twice:
        problems.append(f"{twice} windows have more than one live pane")
    return live, problems


def hourly(flights: pd.DataFrame) -> pd.DataFrame:
    """Departures, cancelled flights and mean delay for each airport and hour of scheduled departure."""
    start = flights["scheduled"].dt.floor("h")
    groups = flights.assign(start=start, end=start + HOUR).groupby(["origin", "start", "end"], as_index=False)
    return groups.agg(departures=("delay", "count"), cancelled=("cancelled", "sum"), mean_delay=("delay", "mean"))


def sessions(flights: pd.DataFrame, gap: pd.Timedelta) -> pd.DataFrame:
    """Departures and miles for each aircraft and session: flights that follow each other by less than ``gap``."""
    ordered = flights.sort_values(["tailnum", "scheduled"])
    since = ordered.groupby("tailnum")["scheduled"].diff()
    numbered = ordered.assign(session=(since.isna() | (since >= gap)).cumsum())
    result = numbered.groupby(["tailnum", "session"], as_index=False).agg(
        start=("scheduled", "min"), end=("scheduled", "max"), departures=("delay", "count"), miles=("distance", "sum")
    )
    return result.drop(columns="session").assign(end=result["end"] + gap)


def too_late(parts: Sequence[pd.DataFrame], delay: pd.Timedelta, lateness: pd.Timedelta) -> set[int]:
    """The flights that arrive after their hour has expired.

    The watermark of a micro-batch is the latest scheduled departure in all batches before it, less ``delay``.
    """
    late: set[int] = set()
    latest: pd.Timestamp | None = None
    for part in parts:
        if latest is not None:
            expires = part["scheduled"].dt.floor("h") + HOUR + lateness
            late.update(part["flight_id"][expires <= latest - delay].tolist())
        newest = part["scheduled"].max()
        latest = newest if latest is None else max(latest, newest)
    return late


def differences(live: pd.DataFrame, expected: pd.DataFrame, keys: Sequence[str], values: Sequence[str]) -> Problems:
    """Differences between the live panes and the batch computation; integers exactly, means to 1e-9."""
    by = [*keys, "start", "end"]
    both = expected.merge(live, on=by, how="outer", suffixes=("_batch", "_stream"), indicator=True)
    problems = [
        f"{amount:,} windows are only in the {where}"
        for side, where in (("left_only", "batch computation"), ("right_only", "stream"))
        if (amount := int((both["_merge"] == side).sum()))
    ]
    both = both[both["_merge"] == "both"]
    for value in values:
        pairs = zip(both[f"{value}_batch"], both[f"{value}_stream"], strict=True)
        wrong = sum(not _equal(batch, stream) for batch, stream in pairs)
        if wrong:
            problems.append(f"{value} differs in {wrong:,} windows")
    return problems


def _equal(batch: object, stream: object) -> bool:
    if pd.isna(batch) or pd.isna(stream):  # type: ignore[call-overload]
        return bool(pd.isna(batch) and pd.isna(stream))  # type: ignore[call-overload]
    if isinstance(batch, float) or isinstance(stream, float):
        return math.isclose(float(batch), float(stream), rel_tol=1e-9, abs_tol=1e-9)  # type: ignore[arg-type]
    return batch == stream
