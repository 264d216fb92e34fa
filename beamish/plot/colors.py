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
    inputs: str
    dropped: str

    @property
    def named(self) -> dict[str, str]:
        """By CSS variable."""
        return {name.replace("_", "-"): color for name, color in attrs.asdict(self).items()}


LIGHT = Colors(
    ground="#ffffff",
    text="#1b2130",
    muted="#697386",
    grid="#e3e7ee",
    early="#2563c9",
    on_time="#147d52",
    late="#c2570c",
    watermark="#7a3fd1",
    inputs="#b8217a",
    dropped="#c81e3a",
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
    inputs="#ff94cf",
    dropped="#ff7085",
)
