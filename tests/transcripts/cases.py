"""The transcripts as cases of a test."""

from __future__ import annotations

import re
from collections.abc import Sequence

from beamish import PaneKind
from tests.transcripts.reading import transcripts

CASES = transcripts()


def by_key(lines: Sequence[str]) -> list[str]:
    """Between keys no order is promised (rules/output.md#order-of-output), nor among dropped rows."""

    def place(text: str) -> tuple[str, bool, str]:
        dropped = text.startswith(PaneKind.DROPPED)
        key = re.match(r"\w+ (.*?)(\[|global|no window)", text)
        return key[1] if key else "", not dropped, text if dropped else ""

    return sorted(lines, key=place)
