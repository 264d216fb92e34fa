"""A call of ``readStream`` and the source that it made, as a replay sees them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

import attrs
from pyspark.sql import DataFrame, SparkSession

from beamish.spark.checkpoint.hadoop_path import HadoopPath

_OF_STREAMS = re.compile(
    r"(max|min)(Files|Bytes|Offsets)PerTrigger|maxTriggerDelay|latestFirst|fileNameOnly|maxFileAge|maxCachedFiles"
    r"|discardCachedInputRatio|cleanSource|sourceArchiveDir|(starting|ending)(Offsets|Timestamp)\w*|subscribe(Pattern)?|assign"
    r"|failOnDataLoss",
    re.IGNORECASE,
)
"""Options that a batch does not have, or that are set here."""
_SCHEME = re.compile(r"^\w[\w+.-]*:(//[^/]*)?")


@attrs.frozen
class ReadCall:
    """A call of ``readStream``.

    Attributes:
        format: of the source.
        options: by name.
        schema: as given; None: not given.
        paths: of files.
    """

    format: str
    options: Mapping[str, str]
    schema: Any
    paths: tuple[str, ...] = ()

    def option(self, name: str) -> str | None:
        """An option, in any case."""
        return next((value for key, value in self.options.items() if key.lower() == name.lower()), None)

    def reader(self, spark: SparkSession) -> Any:
        """A reader of batches with its options."""
        kept = {name: value for name, value in self.options.items() if not _OF_STREAMS.fullmatch(name)}
        return spark.read.format(self.format).options(**kept)


class PastSource(Protocol):
    """A source of a query, with what it gave."""

    def fits(self, call: ReadCall) -> bool:
        """Whether a call of ``readStream`` may have made it."""
        ...

    def frame(self, spark: SparkSession, call: ReadCall, start: str | None, end: str | None) -> DataFrame:
        """Its rows between two offsets."""
        ...

    def lost(self, spark: SparkSession, call: ReadCall, spans: Sequence[tuple[str | None, str | None]]) -> int:
        """The number of the first spans whose rows it no longer has in full."""
        ...


def place_of(path: str) -> str:
    """A path without its scheme and host."""
    return unquote(_SCHEME.sub("", path))


def exists(spark: SparkSession, path: str) -> bool:
    """Whether a file is there."""
    if path.startswith(("file:", "/")):
        return Path(place_of(path)).exists()
    try:
        return HadoopPath.of(spark, unquote(path)).exists()
    except AttributeError:  # Spark Connect has no JVM; a missing file is then Spark's own error
        return True
