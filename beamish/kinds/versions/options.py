"""The options of versioned tables and of joins with them: ``Pipeline.versions`` and ``bm.as_of_join``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, get_args

import attrs

from beamish.durations import Duration, DurationLike, not_negative
from beamish.errors import OptionError, PipelineError
from beamish.modes import BOTH_INPUTS, AccumulationMode, WaitFor

VALID_FROM, VALID_TO = "valid_from", "valid_to"
"""The columns of the validity interval: its start, and its exclusive end."""

JOINS = ("inner", "left")
Direction: TypeAlias = Literal["backward", "forward", "nearest"]
"""Which version a row matches: the one valid at its time, the first that begins then or later, or the nearer of both."""
AsOf: TypeAlias = Literal["event_time", "arrival"]
"""Whether a row is joined as of its event time, or with the table as it stands when the row arrives."""


def check_column(call: str, name: str, value: Any) -> str | None:
    """The name of a column, or None (OptionError: not a name)."""
    if value is not None and (not isinstance(value, str) or not value):
        raise OptionError(f"{call}({name}={value!r}): must be the name of a column")
    return value


@attrs.frozen
class VersionsOptions:
    """The options of ``Pipeline.versions``.

    Attributes:
        history: how far behind the watermark reads are exact.
        values: the columns of a version; None: all but keys, ``deleted``, and the event time if it is called "timestamp".
        deleted: the column that is true for a delete.
        sequence_by: the column that orders changes of the same key and time.
        allowed_lateness: how far behind the watermark a change may be; at most ``history``.
        only_updated: whether a change equal to the current version is ignored.
        latest_only: whether only latest versions are emitted.
        with_dropped: whether dropped changes are emitted.
    """

    history: Duration
    values: tuple[str, ...] | None = None
    deleted: str | None = None
    sequence_by: str | None = None
    allowed_lateness: Duration = Duration(0)
    only_updated: bool = False
    latest_only: bool = False
    with_dropped: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the options name."""
        named = (*(self.values or ()), self.deleted, self.sequence_by)
        return tuple(dict.fromkeys(name for name in named if name is not None))

    @property
    def arguments(self) -> str:
        """The arguments as source code."""
        words = [repr(str(self.history))]
        if self.values is not None:
            words.append(f"values={list(self.values)!r}")
        words += [
            f"{name}={getattr(self, name)!r}" for name in ("deleted", "sequence_by") if getattr(self, name) is not None
        ]
        if self.allowed_lateness != self.history:
            words.append(f"allowed_lateness={str(self.allowed_lateness)!r}")
        words += [f"{name}=True" for name in ("only_updated", "latest_only") if getattr(self, name)]
        return ", ".join(words)


def read_versions(
    history: DurationLike,
    *,
    values: Any = None,
    deleted: str | None = None,
    sequence_by: str | None = None,
    allowed_lateness: DurationLike | None = None,
    only_updated: bool = False,
    latest_only: bool = False,
) -> VersionsOptions:
    """Read the arguments of ``Pipeline.versions``.

    Raises:
        OptionError: an argument is invalid.
        PipelineError: the lateness is above the history.
    """
    kept = not_negative("versions(history)", history)
    late = kept if allowed_lateness is None else not_negative("versions(allowed_lateness)", allowed_lateness)
    if late > kept:
        raise PipelineError(
            f"versions(allowed_lateness={str(late)!r}) above history {str(kept)!r}: the version that such a late change would correct has expired; give a longer history"
        )
    if values is not None:
        are_names = isinstance(values, Iterable) and not isinstance(values, str)
        if not are_names or not all(isinstance(name, str) and name for name in values):
            raise OptionError(f"versions(values={values!r}): must be column names, such as ['rate']")
        values = tuple(values)
        if len(set(values)) < len(values):
            raise OptionError(f"versions(values={list(values)!r}): a column is named twice; once is enough")
    return VersionsOptions(
        kept,
        values,
        check_column("versions", "deleted", deleted),
        check_column("versions", "sequence_by", sequence_by),
        late,
        bool(only_updated),
        bool(latest_only),
    )


@attrs.frozen
class AsOfOptions:
    """The options of ``bm.as_of_join``.

    Attributes:
        how: "inner": a row without a match is not emitted; "left": it is, with null.
        tolerance: how far from a row the start of a matching version may be; None: unlimited.
        grace: how far past a row the watermark must be before it is emitted.
        early: whether a row is emitted on arrival, to be corrected.
        wait_for: which watermark a row waits for.
        allow_exact_matches: whether a row matches a version that begins at its own time.
        direction: which version it matches.
        as_of: whether the table is read as of the row's time, or as it stands when the row arrives.
        mode: DISCARDING, or ACCUMULATING_AND_RETRACTING to correct emitted rows.
        with_dropped: whether dropped rows are emitted.
    """

    how: Literal["inner", "left"] = "inner"
    tolerance: Duration | None = None
    grace: Duration = Duration(0)
    early: bool = False
    wait_for: WaitFor = BOTH_INPUTS
    allow_exact_matches: bool = True
    direction: Direction = "backward"
    as_of: AsOf = "event_time"
    mode: AccumulationMode = AccumulationMode.DISCARDING
    with_dropped: bool = False

    @property
    def retracts(self) -> bool:
        """Whether wrong rows are retracted."""
        return self.mode is AccumulationMode.ACCUMULATING_AND_RETRACTING

    @property
    def at_arrival(self) -> bool:
        """Whether rows are joined with the table as it stands when they arrive."""
        return self.as_of == "arrival"

    @property
    def ahead(self) -> Duration:
        """How far after a row a version that it matches may begin."""
        return Duration(0) if self.direction == "backward" or self.tolerance is None else self.tolerance

    @property
    def waits(self) -> Duration:
        """How far past a row the watermark must be before it is emitted."""
        return self.grace + self.ahead

    @property
    def arguments(self) -> str:
        """The arguments as source code, without ``on`` and the inputs."""
        words = [f"how={self.how!r}"] if self.how != "inner" else []
        words += [f"direction={self.direction!r}"] if self.direction != "backward" else []
        words += [f"as_of={self.as_of!r}"] if self.at_arrival else []
        words += [f"tolerance={str(self.tolerance)!r}"] if self.tolerance is not None else []
        words += [f"grace={str(self.grace)!r}"] if self.grace else []
        words += ["early=True"] if self.early else []
        words += [f"wait_for=bm.{self.wait_for.name}"] if self.wait_for is not BOTH_INPUTS else []
        words += ["allow_exact_matches=False"] if not self.allow_exact_matches else []
        return ", ".join(words)


def read_as_of(
    *,
    how: str,
    tolerance: DurationLike | None,
    grace: DurationLike,
    early: bool,
    wait_for: WaitFor,
    allow_exact_matches: bool,
    direction: str,
    as_of: str,
) -> AsOfOptions:
    """Read the arguments of ``bm.as_of_join`` (OptionError: an argument is invalid)."""
    if how not in JOINS:
        raise OptionError(f"as_of_join(how={how!r}): must be 'inner', or 'left' for rows without a match too")
    if wait_for not in (WaitFor.BOTH_INPUTS, WaitFor.LEFT_INPUT):
        raise OptionError(f"as_of_join(wait_for={wait_for!r}): must be bm.BOTH_INPUTS or bm.LEFT_INPUT")
    if direction not in get_args(Direction):
        raise OptionError(
            f"as_of_join(direction={direction!r}): must be 'backward', 'forward' or 'nearest', as in pandas.merge_asof"
        )
    if as_of not in get_args(AsOf):
        raise OptionError(
            f"as_of_join(as_of={as_of!r}): must be 'event_time', or 'arrival' for the table as it stands when a row arrives"
        )
    within = None if tolerance is None else not_negative("as_of_join(tolerance)", tolerance)
    waits = not_negative("as_of_join(grace)", grace)
    of_time = {
        "tolerance": within is not None,
        "grace": bool(waits),
        "early": bool(early),
        "allow_exact_matches": not allow_exact_matches,
        "direction": direction != "backward",
    }
    if as_of == "arrival" and any(of_time.values()):
        named = next(name for name, is_given in of_time.items() if is_given)
        raise OptionError(
            f"as_of_join(as_of='arrival', {named}=...): a row is joined once, as it arrives, whatever its time; leave {named} out, or "
            "as_of='arrival'"
        )
    if within is None and direction != "backward":
        raise OptionError(
            f"as_of_join(direction={direction!r}) without a tolerance: a row would wait for ever for a version that begins after it; "
            "add tolerance='10 minutes', how far after the row it may begin"
        )
    if within is not None and not within and not allow_exact_matches:
        raise OptionError(
            f"as_of_join(tolerance={str(within)!r}, allow_exact_matches=False): a row would never match, since a version that begins at its time is excluded, and any other is too far; give a longer tolerance"
        )
    return AsOfOptions(
        "left" if how == "left" else "inner",
        within,
        waits,
        bool(early),
        wait_for,
        bool(allow_exact_matches),
        direction,  # type: ignore[arg-type]
        as_of,  # type: ignore[arg-type]
    )
