"""The colours of a timeline, light and dark; each is also a CSS variable of the page."""

from __future__ import annotations

import attrs


@attrs.frozen
class Colors:
    """Colours by purpose; all distinct, so that a drawing can be mapped back to names."""

    ground: str
    text: str
    muted: str
    grid: str
    early: str
    on_time: str
    late: str
    watermark: str
    dropped: str
    input_1: str
    input_2: str
    input_3: str
    input_4: str

    @property
    def named(self) -> dict[str, str]:
        """By CSS variable."""
        return {name.replace("_", "-"): color for name, color in attrs.asdict(self).items()}

    def of_input(self, number: int) -> str:
        """The colour of an input of a merge, from 0; beyond four they repeat."""
        return (self.input_1, self.input_2, self.input_3, self.input_4)[number % 4]


LIGHT = Colors(
    ground="#ffffff",
    text="#1b2130",
    muted="#697386",
    grid="#e3e7ee",
    early="#2563c9",
    on_time="#147d52",
    late="#c2570c",
    watermark="#7a3fd1",
    dropped="#c81e3a",
    input_1="#b8217a",
    input_2="#00798a",
    input_3="#7d5a00",
    input_4="#5a7a00",
)
DARK = Colors(
    ground="#12161e",
    text="#e7eaf1",
    muted="#98a2b5",
    grid="#2a3140",
    early="#78aefc",
    on_time="#4fcf97",
    late="#ffab66",
    watermark="#bf9bff",
    dropped="#ff7085",
    input_1="#ff94cf",
    input_2="#4fd1de",
    input_3="#d9b86a",
    input_4="#b7d15c",
)
