"""Which stages run together, and why others do not (docs/rules/running.md#fused-stages).

A group is sharded by some columns. A stage may run in the group of the stages before it if their columns are among its keys, unchanged:
so equal keys fuse, and keys that grow. Rows of sources that it takes too are then sharded by these columns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import attrs

from beamish.contract.relation import Relation
from beamish.errors import OptionError, PipelineError
from beamish.flow import BoundFlow, Flow
from beamish.fusion.operator import FusedOperator, Link
from beamish.source import Source


@attrs.frozen
class Border:
    """Why a stage does not run together with one before it.

    Attributes:
        stage: the number of the stage before it, from 1.
        why: as a clause.
        call: what would fuse them; empty: nothing does.
    """

    stage: int
    why: str
    call: str = ""


@attrs.frozen(eq=False)
class _Stage:
    """A stage, as far as it decides what it may run with.

    Attributes:
        inputs: the stages whose panes it takes; None: rows of a source.
        takes, gives: its relations.
        columns: of its first input, those that decide a row's shard.
        shards: whether it has several.
    """

    inputs: tuple[_Stage | None, ...]
    takes: Sequence[Relation]
    gives: Relation
    columns: tuple[str, ...]
    shards: bool

    @classmethod
    def of_bound(cls, flow: BoundFlow) -> _Stage:
        inputs = (None if isinstance(taken, Source) else cls.of_bound(taken) for taken in flow.inputs)
        takes, gives, shards = flow.operator.takes, flow.operator.gives, flow.operator.shards > 1
        return cls(tuple(inputs), takes, gives, flow.stage.shard_columns(takes), shards)

    @classmethod
    def of_flow(cls, flow: Flow) -> _Stage:
        inputs = (None if isinstance(taken, Source) else cls.of_flow(taken.flow) for taken in flow.inputs)
        columns = flow.stage.shard_columns(flow.takes)
        return cls(tuple(inputs), flow.takes, flow.gives, columns, bool(columns))

    @property
    def stages(self) -> list[_Stage]:
        """Each after those it depends on, as in ``Flow.flows``; the last is itself."""
        return [*(stage for taken in self.inputs if taken is not None for stage in taken.stages), self]


@attrs.define(eq=False)
class _Group:
    """Stages that run together, while they are found.

    Attributes:
        members: their numbers, each after those it takes from.
        by: per stage the positions of the keys that decide the shard; None: all.
        columns: the names of the sharding columns, in the output of the last one; None: they are not in it.
        shards: whether there are several.
    """

    members: list[int]
    by: dict[int, tuple[int, ...] | None]
    columns: tuple[str, ...] | None
    shards: bool


@attrs.frozen(eq=False)
class GroupedFlow(BoundFlow):
    """A group as one stage, over sources and the groups before it.

    Attributes:
        inputs: sources, and the groups before it.
        of: its last stage, as declared, with all before it.
        links: its stages.
        paths: per input the numbers of the inputs that lead to it from the last stage, such as ``.0.1``.
        borders: of its stages with the groups before it, by the number of the stage.
    """

    inputs: tuple[Source | GroupedFlow, ...]
    of: BoundFlow
    links: tuple[Link, ...]
    paths: tuple[str, ...]
    borders: Mapping[int, Sequence[Border]]

    @property
    def each(self) -> tuple[GroupedFlow, ...]:
        """The groups before it, each after those it depends on, and itself."""
        below = (group for taken in self.inputs if isinstance(taken, GroupedFlow) for group in taken.each)
        return (*below, self)

    @property
    def groups(self) -> set[frozenset[int]]:
        """The numbers of the stages of each group."""
        return {frozenset(link.number for link in group.links) for group in self.each}


@attrs.frozen
class Fuse:
    """Which stages run together.

    Attributes:
        together: whether any do.
        shard_by: key columns by which groups are sharded whose stages over sources have them; empty: by all keys of those.
        groups: the numbers of the stages of each group, as in a checkpoint; None: all that may.
        places: with ``groups``, per number of a stage the positions of the keys that decide the shard; None: all.
    """

    together: bool = True
    shard_by: tuple[str, ...] = ()
    groups: Collection[frozenset[int]] | None = None
    places: Mapping[int, tuple[int, ...] | None] = {}

    def grouped(self, flow: BoundFlow) -> GroupedFlow:
        """A bound flow whose stages run together (PipelineError: no stage over a source has the columns of ``shard_by``)."""
        return _Builder(flow, self).group(flow)

    def may(self, number: int, before: int) -> bool:
        """Whether two stages may be in one group."""
        if self.groups is None:
            return self.together
        return any({number, before} <= group for group in self.groups)


FUSE, APART = Fuse(), Fuse(together=False)


def fuse_of(call: str, fuse: Any, shard_by: Any) -> Fuse:
    """The options of a call.

    Raises:
        OptionError: not a bool, or not names of columns.
    """
    if not isinstance(fuse, bool):
        raise OptionError(f"{call}(fuse={fuse!r}): must be True or False")
    if shard_by is None:
        return Fuse(fuse)
    names = () if isinstance(shard_by, str) else tuple(shard_by)
    if not names or not all(isinstance(name, str) for name in names):
        raise OptionError(f"{call}(shard_by={shard_by!r}): must be a list of key columns, such as ['user']")
    if not fuse:
        raise OptionError(
            f"{call}(fuse=False, shard_by={shard_by!r}): only fused stages are sharded by it; leave out one of the two"
        )
    return Fuse(fuse, names)


class _Grouping:
    """The groups of some stages.

    Attributes:
        groups: by the number of their last stage so far.
        borders: with the groups before, by the number of the stage.
    """

    def __init__(self, last: _Stage, how: Fuse) -> None:
        self._stages, self._how = last.stages, how
        self._number = {id(one): number for number, one in enumerate(self._stages, 1)}
        self.groups: dict[int, _Group] = {}
        self.borders: dict[int, list[Border]] = {}
        for stage in self._stages:
            self.groups[self._number[id(stage)]] = self._placed(stage)
        self._check_shard_by()

    def _placed(self, stage: _Stage) -> _Group:
        """The group of a stage; those before it have theirs."""
        number, joined, by = self._number[id(stage)], list[_Group](), self._declared(stage)
        for takes, taken in zip(stage.takes, stage.inputs, strict=True):
            if taken is None:
                continue
            before = self._number[id(taken)]
            found = self._positions(stage, takes, before)
            if not isinstance(found, Border) and joined and found != by:
                found = Border(before, "its columns of the shard are not those of the other inputs")
            if isinstance(found, Border):
                self.borders.setdefault(number, []).append(found)
            else:
                joined.append(self.groups[before])
                by = found
        members = [one for group in joined for one in group.members]
        each = {one: of for group in joined for one, of in group.by.items()}
        return _Group([*members, number], {**each, number: by}, _columns(stage, by), stage.shards)

    def _declared(self, stage: _Stage) -> tuple[int, ...] | None:
        """The positions of ``shard_by`` among the keys of a stage; None: it has other keys, or these are all."""
        keys, names = stage.columns, self._how.shard_by
        if self._how.groups is not None:
            return self._how.places.get(self._number[id(stage)])
        if not names or not set(names) < set(keys) or not stage.shards:
            return None
        return tuple(keys.index(name) for name in names)

    def _positions(self, stage: _Stage, takes: Relation, before: int) -> tuple[int, ...] | Border | None:
        """The positions of a group's columns among the keys of the stage after it; None: they are all keys."""
        group = self.groups[before]
        if not self._how.may(self._number[id(stage)], before):
            return Border(before, "fuse=False" if self._how.groups is None else "as in the checkpoint")
        if group.shards != stage.shards:
            return Border(before, f"all {'its' if group.shards else 'their'} rows are in one shard")
        if not stage.shards:
            return None
        keys = takes.keys or stage.columns
        if group.columns is None or not set(group.columns) <= set(keys):
            return self._shuffle(keys, group, before)
        found = tuple(keys.index(name) for name in group.columns)
        return None if found == tuple(range(len(keys))) else found

    def _shuffle(self, keys: Sequence[str], group: _Group, before: int) -> Border:
        own, given = list(map(str, keys)), self._stages[before - 1].gives.keys
        why = f"its keys {own!r} are not those of stage {before}, {list(map(str, group.columns or given))!r}"
        below = [self._stages[number - 1].columns for number in group.members]
        shared = [name for name in own if name in given and all(name in keys for keys in below)]
        return Border(before, why, f"apply(..., shard_by={shared!r})" if shared else "")

    def _check_shard_by(self) -> None:
        if not self._how.shard_by:
            return
        over_sources = [stage.columns for stage in self._stages if None in stage.inputs]
        if not any(set(self._how.shard_by) <= set(keys) for keys in over_sources):
            known = " or ".join(repr(list(map(str, keys))) for keys in over_sources)
            raise PipelineError(
                f"apply(shard_by={list(self._how.shard_by)!r}): the stages over sources have keys {known}; name some of them"
            )

    @property
    def whole(self) -> list[_Group]:
        """The groups, complete."""
        inner = {one for group in self.groups.values() for one in group.members[:-1]}
        return [group for number, group in self.groups.items() if number not in inner]


def _columns(stage: _Stage, by: tuple[int, ...] | None) -> tuple[str, ...] | None:
    """The columns that decide the shard, by their names in the output; None: they are not in it."""
    columns = stage.columns if by is None else tuple(stage.columns[at] for at in by)
    return columns if set(columns) <= set(stage.gives.keys) else None


class _Builder:
    """Makes the groups of a bound flow."""

    def __init__(self, flow: BoundFlow, how: Fuse) -> None:
        self._flows = flow.flows
        self._number = {id(one): number for number, one in enumerate(self._flows, 1)}
        self._found = _Grouping(_Stage.of_bound(flow), how)

    def group(self, last: BoundFlow) -> GroupedFlow:
        """The group with this last stage, over those before it."""
        group = self._found.groups[self._number[id(last)]]
        numbers, members = tuple(group.members), [self._flows[number - 1] for number in group.members]
        borders = {number: self._found.borders[number] for number in numbers if number in self._found.borders}
        place = {id(one): at for at, one in enumerate(members)}
        path_of = dict(_paths(last, place))
        if len(members) == 1:
            links = [Link(numbers[0], last.operator, (None,) * len(last.inputs), "", None)]
            operator, leaves = last.operator, [(links[0], number) for number, _ in enumerate(last.inputs)]
        else:
            links = [self._link(one, group.by, place, path_of[id(one)]) for one in members]
            operator = fused = FusedOperator(links)
            leaves = list(fused.leaves)
        taken = [self._flows[link.number - 1].inputs[number] for link, number in leaves]
        inputs = tuple(one if isinstance(one, Source) else self.group(one) for one in taken)
        paths = tuple(f"{link.path}.{number}" for link, number in leaves)
        return GroupedFlow(
            last.stage, operator, of=last, inputs=inputs, links=tuple(links), paths=paths, borders=borders
        )

    def _link(
        self, flow: BoundFlow, of_group: Mapping[int, tuple[int, ...] | None], place: Mapping[int, int], path: str
    ) -> Link:
        number = self._number[id(flow)]
        by = of_group[number]
        inputs = tuple(place.get(id(taken)) for taken in flow.inputs)
        takes = [
            attrs.evolve(relation, shards_by=by if of is None else ())
            for relation, of in zip(flow.operator.takes, inputs, strict=True)
        ]
        operator = flow.stage.bind(takes, shards=flow.operator.shards)
        return Link(number, operator, inputs, path, by)


def _paths(flow: BoundFlow, place: Collection[int], path: str = "") -> Iterator[tuple[int, str]]:
    yield id(flow), path
    for number, taken in enumerate(flow.inputs):
        if id(taken) in place and isinstance(taken, BoundFlow):
            yield from _paths(taken, place, f"{path}.{number}")


def described(flow: Flow | BoundFlow) -> dict[int, list[tuple[str, str]]]:
    """The lines of explain about fusion, by the number of the stage: what it runs with, and why it does not run with stages before it."""
    found = _Grouping(_Stage.of_flow(flow) if isinstance(flow, Flow) else _Stage.of_bound(flow), FUSE)
    lines: dict[int, list[tuple[str, str]]] = {number: [] for number in found.groups}
    for group in found.whole:
        for number in group.members:
            others = [str(one) for one in group.members if one != number]
            if others:
                named = f"stage{'s' * (len(others) > 1)} {' and '.join(others)}"
                lines[number].append(("fused", f"with {named}: one shuffle, one operator"))
    for number, borders in found.borders.items():
        for border in borders:
            fix = f"; {border.call} fuses them, in shards that are less even" if border.call else ""
            lines[number].append(("shuffle", f"of the panes of stage {border.stage}: {border.why}{fix}"))
    return lines
