"""The metrics of ``bm.Listener``: from its server or its file, in Prometheus' text format."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import attrs

from beamish.addresses import printable

_MOST = 1_000_000
"""Maximum number of bytes that are read."""
_SAMPLE = re.compile(r"(beamish_\w+?)(?:_total)?(?:\{(.*)\})? ([^ ]+)(?: \d+)?")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"(?:,|$)')
_ESCAPED = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
_SECONDS = 3


@attrs.frozen
class Metrics:
    """Metrics of queries.

    Attributes:
        values: name, labels and value of each; the names as in ``bm.Listener``, without ``_total``.
        problem: why they cannot be read now; empty: they can.
    """

    values: Sequence[tuple[str, Mapping[str, str], float]] = ()
    problem: str = ""

    @property
    def queries(self) -> list[str]:
        """The names of the queries."""
        return sorted({labels["query"] for _, labels, _ in self.values if "query" in labels})

    def by(self, query: str, name: str, *labels: str) -> dict[str, float]:
        """The values of a metric, by labels."""
        return {
            " ".join(own.get(label, "").lower().replace("_", " ") for label in labels): value
            for of, own, value in self.values
            if of == name and own.get("query") == query
        }


def read_metrics(where: str) -> Metrics:
    """Read them from a URL, such as http://127.0.0.1:9095/metrics, or a file."""
    try:
        if where.startswith(("http://", "https://")):
            with urlopen(Request(where), timeout=_SECONDS) as answer:  # noqa: S310 - named on the command line
                told = answer.read(_MOST)
        else:
            with Path(where).open("rb") as file:
                told = file.read(_MOST)
    except (OSError, URLError, ValueError) as error:
        return Metrics(problem=f"the metrics at {printable(where)} cannot be read now ({type(error).__name__})")
    return Metrics(parsed(told.decode("utf-8", "replace")))


def parsed(lines: str) -> list[tuple[str, Mapping[str, str], float]]:
    """The samples of beamish in Prometheus' text format; other lines are skipped."""
    found: list[tuple[str, Mapping[str, str], float]] = []
    for line in lines.splitlines():
        sample = _SAMPLE.fullmatch(line)
        if sample is None or sample[1].endswith("_created"):
            continue
        labels = {
            name: re.sub(r"\\.", lambda one: _ESCAPED.get(one[0], one[0]), value)
            for name, value in _LABEL.findall(sample[2] or "")
        }
        try:
            found.append((sample[1], labels, float(sample[3])))
        except ValueError:
            continue
    return found
