"""Charts as SVG without text, so that they stretch with the page, and the stages of a query as boxes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import attrs

from beamish.checkpoint.overview import Overview, StageOverview
from beamish.dashboard.html import Markup, tag

_HEIGHT = 100
_GAP = 0.12
"""The part of a bar's width that is left free."""
_FEW = 4
"""Up to this many bars a chart is narrow."""


@attrs.frozen
class Bar:
    """A bar of a chart.

    Attributes:
        parts: heights by CSS class, from below.
        words: what it shows, for a tooltip.
    """

    parts: Mapping[str, float]
    words: str

    @property
    def height(self) -> float:
        """Its whole height."""
        return sum(self.parts.values())


def bars(each: Sequence[Bar], label: str, *, marker: float | None = None) -> Markup:
    """A bar chart.

    Args:
        each: the bars, from the left.
        label: what it shows, for readers that do not see it.
        marker: the place of a line, in bars from the left; None: no line.
    """
    most = max((bar.height for bar in each), default=0) or 1
    drawn = [
        tag(
            "g",
            tag("title", bar.words),
            tag("rect", x=place, y=0, width=1, height=_HEIGHT, class_="back"),
            _parts(place, bar, most),
        )
        for place, bar in enumerate(each)
    ]
    line = None
    if marker is not None:
        line = tag("line", x1=round(marker, 3), x2=round(marker, 3), y1=0, y2=_HEIGHT, class_="marker")
    box, is_few = f"0 0 {max(len(each), 1)} {_HEIGHT}", len(each) <= _FEW
    return tag(
        "svg",
        drawn,
        line,
        viewBox=box,
        preserveAspectRatio="none",
        class_="chart few" if is_few else "chart",
        role="img",
        aria_label=label,
    )


def _parts(place: int, bar: Bar, most: float) -> Iterator[Markup]:
    below = 0.0
    for name, height in bar.parts.items():
        drawn = height / most * _HEIGHT
        below += drawn
        if height:
            yield tag(
                "rect",
                x=round(place + _GAP / 2, 3),
                y=round(_HEIGHT - below, 2),
                width=1 - _GAP,
                height=round(drawn, 2),
                class_=name,
            )


_WIDE, _HIGH, _SLOT, _LEVEL, _MARGIN = 168, 46, 190, 88, 14
"""Boxes: width, height, distance across and down, and the margin around them."""


@attrs.frozen
class _Node:
    """A stage or source.

    Attributes:
        stage: the stage; None: a source.
        title, words: its lines.
        below: what it reads.
    """

    stage: StageOverview | None
    title: str
    words: str
    below: Sequence[_Node]

    @property
    def leaves(self) -> int:
        return sum(one.leaves for one in self.below) or 1

    @property
    def depth(self) -> int:
        return 1 + max((one.depth for one in self.below), default=0)


def stages(overview: Overview) -> Markup:
    """The stages of a query, sources on top; those that run together are framed."""
    by_number = {one.number: one for one in overview.stages}
    read = {taken.of_stage for one in overview.stages for taken in one.inputs}
    roots = [_node(one, by_number) for one in overview.stages if one.number not in read]
    deepest = max((root.depth for root in roots), default=0)
    operators = Counter(one.operator for one in overview.stages)
    drawing = _Drawing(frozenset(operator for operator, stages in operators.items() if stages > 1))
    left = 0
    for root in roots:
        drawing.place(root, left, deepest - 1)
        left += root.leaves
    width, height = left * _SLOT, deepest * _LEVEL
    return tag(
        "svg",
        drawing.frames,
        drawing.lines,
        drawing.boxes,
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        class_="stages",
        role="img",
        aria_label="; ".join(map(_in_words, overview.stages)),
    )


def _node(stage: StageOverview, by_number: Mapping[int, StageOverview]) -> _Node:
    below = [
        _node(by_number[one.of_stage], by_number)
        if one.of_stage is not None and one.of_stage in by_number and one.of_stage < stage.number
        else _Node(None, one.name or "source", one.moves or "", ())
        for one in stage.inputs
    ]
    return _Node(stage, f"stage {stage.number}", title_of(stage), below)


def title_of(stage: StageOverview) -> str:
    """The shortest description of a stage."""
    name = next((name for name in ("windows", "rows") if name in stage.lines), next(iter(stage.lines), ""))
    words = stage.lines.get(name, "")
    return words if name == "windows" else f"{name}: {words}" if words else ""


def _in_words(stage: StageOverview) -> str:
    taken = ", ".join(
        f"stage {one.of_stage}" if one.of_stage else f"source {one.name}" if one.name else "a source"
        for one in stage.inputs
    )
    return f"stage {stage.number}, {title_of(stage)}, reads {taken or 'a source'}"


@attrs.define
class _Drawing:
    """Boxes and lines.

    Attributes:
        fused: the operators that run several stages.
        frames, lines, boxes: what is drawn, from below.
    """

    fused: frozenset[int]
    frames: list[Markup] = attrs.Factory(list)
    lines: list[Markup] = attrs.Factory(list)
    boxes: list[Markup] = attrs.Factory(list)

    def place(self, node: _Node, left: int, level: int) -> float:
        """Draw a node and those below it; returns its middle."""
        middle, at, y = (left + node.leaves / 2) * _SLOT, left, level * _LEVEL + (_LEVEL - _HIGH) / 2
        for one in node.below:
            above = self.place(one, at, level - 1)
            at += one.leaves
            ends = {"x1": above, "y1": y - _LEVEL + _HIGH, "x2": middle, "y2": y}
            if node.stage is not None and one.stage is not None and node.stage.operator == one.stage.operator:
                self.frames.append(tag("line", class_="fused", **ends))
            self.lines.append(tag("line", class_="arrow", **ends))
        x = middle - _WIDE / 2
        if node.stage is not None and node.stage.operator in self.fused:
            size = {"width": _WIDE + _MARGIN, "height": _HIGH + _MARGIN}
            self.frames.append(tag("rect", x=x - _MARGIN / 2, y=y - _MARGIN / 2, rx=10, class_="fused", **size))
        self.boxes.append(
            tag(
                "g",
                tag("title", f"{node.title}: {node.words}" if node.words else node.title),
                tag(
                    "rect",
                    x=x,
                    y=y,
                    width=_WIDE,
                    height=_HIGH,
                    rx=6,
                    class_="source" if node.stage is None else "stage",
                ),
                tag("text", _short(node.title, 22), x=middle, y=y + 19, class_="title"),
                tag("text", _short(node.words, 25), x=middle, y=y + 36),
            )
        )
        return middle


def _short(words: str, most: int) -> str:
    return words if len(words) <= most else f"{words[: most - 1]}…"
