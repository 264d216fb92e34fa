"""The sources of a query, read again: the files, Kafka records and rows of Delta that a micro-batch took.

The function with which a job makes its streams is called with a session whose ``readStream`` reads these rows as a batch. So format,
options, schema and all transformations are the job's own.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import attrs
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from beamish.addresses import printable, printable_text
from beamish.errors import OptionError, StateError
from beamish.spark.replay.delta import TABLE, PastDelta
from beamish.spark.replay.delta_log import Position
from beamish.spark.replay.log import PastBatch, PastQuery
from beamish.spark.replay.read_call import PastSource, ReadCall, exists, place_of
from beamish.spark.runtime.session import check_connector

FORMATS = ("parquet", "orc", "json", "csv", "text", "avro", "xml")
"""Formats of files that Spark streams."""


@attrs.frozen(eq=False)
class PastFiles:
    """A source of files, with its log of them.

    Attributes:
        files: each path, with the number of the source's own batch that took it.
    """

    files: Sequence[tuple[int, str]]

    def fits(self, call: ReadCall) -> bool:
        if call.format not in FORMATS:
            return False
        places = [os.path.abspath(place_of(_literal(path))) for path in call.paths]  # noqa: PTH100 - it may be of another file system
        return not self.files or any(place_of(self.files[0][1]).startswith(place) for place in places)

    def paths(self, start: str | None, end: str | None) -> list[str]:
        """The paths between two offsets."""
        first, last = (-1 if one is None else int(json.loads(one)["logOffset"]) for one in (start, end))
        return [path for number, path in self.files if first < number <= last]

    def frame(self, spark: SparkSession, call: ReadCall, start: str | None, end: str | None) -> DataFrame:
        paths = self.paths(start, end)
        if not paths and call.schema is not None:
            schema: Any = call.schema
            return spark.createDataFrame([], schema)
        reader = call.reader(spark) if call.schema is None else call.reader(spark).schema(call.schema)
        if len(call.paths) == 1 and call.paths[0] == _literal(call.paths[0]):
            reader = reader.option("basePath", call.paths[0])  # for columns in the names of folders
        rows: DataFrame = reader.load(list(map(unquote, paths or [self.files[-1][1]])))
        return rows if paths else rows.where(F.lit(False))  # noqa: FBT003 - none of them

    def lost(self, spark: SparkSession, call: ReadCall, spans: Sequence[tuple[str | None, str | None]]) -> int:
        gone = [
            place for place, span in enumerate(spans, 1) if not all(exists(spark, path) for path in self.paths(*span))
        ]
        return max(gone, default=0)


_RECORD = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
_HEADERS = ", headers array<struct<key: string, value: binary>>"


@attrs.frozen(eq=False)
class PastTopics:
    """A source of Kafka topics.

    Attributes:
        first: the offsets that it began with, as JSON; None: unknown.
        topics: their names.
    """

    first: str | None
    topics: frozenset[str]

    def fits(self, call: ReadCall) -> bool:
        if call.format != "kafka":
            return False
        if pattern := call.option("subscribePattern"):
            return all(re.fullmatch(pattern, topic) for topic in self.topics)
        named = call.option("subscribe")
        names = {one.strip() for one in named.split(",")} if named else set(json.loads(call.option("assign") or "{}"))
        return names >= self.topics

    def _spans(self, start: str | None, end: str | None) -> dict[str, dict[str, tuple[int, int]]]:
        """The offsets of each topic and partition with rows; -2 is the first."""
        begin = json.loads(start or self.first or "{}")
        found: dict[str, dict[str, tuple[int, int]]] = {}
        for topic, partitions in json.loads(end or "{}").items():
            for partition, last in partitions.items():
                first = begin.get(topic, {}).get(partition, -2)
                if first != last:
                    found.setdefault(topic, {})[partition] = (first, last)
        return found

    def frame(self, spark: SparkSession, call: ReadCall, start: str | None, end: str | None) -> DataFrame:
        spans = self._spans(start, end)
        if not spans:
            headers = (call.option("includeHeaders") or "").lower() == "true"
            schema: Any = f"{_RECORD}{_HEADERS if headers else ''}"
            return spark.createDataFrame([], schema)
        bounds = [
            {topic: {number: bound[place] for number, bound in of.items()} for topic, of in spans.items()}
            for place in (0, 1)
        ]
        parts = {topic: sorted(map(int, of)) for topic, of in spans.items()}
        reader = call.reader(spark).option("assign", json.dumps(parts)).option("failOnDataLoss", "false")
        reader = reader.option("startingOffsets", json.dumps(bounds[0])).option("endingOffsets", json.dumps(bounds[1]))
        rows: DataFrame = reader.load()
        return rows

    @staticmethod
    def _least(rows: DataFrame) -> dict[tuple[str, str], int]:
        """The least offset of each topic and partition."""
        least = rows.groupBy("topic", "partition").agg(F.min("offset").alias("first")).collect()
        return {(row["topic"], str(row["partition"])): row["first"] for row in least}

    def _has_first(
        self, spark: SparkSession, call: ReadCall, spans: Mapping[str, Mapping[str, tuple[int, int]]]
    ) -> bool:
        """Whether the first record of each partition is there: then all are, and need not be looked for."""
        firsts = {topic: {number: max(first, 0) for number, (first, _) in of.items()} for topic, of in spans.items()}
        seconds = {topic: {number: first + 1 for number, first in of.items()} for topic, of in firsts.items()}
        found = self._least(self.frame(spark, call, json.dumps(firsts), json.dumps(seconds)))
        return len(found) == sum(map(len, firsts.values()))

    def lost(self, spark: SparkSession, call: ReadCall, spans: Sequence[tuple[str | None, str | None]]) -> int:
        if self._has_first(spark, call, self._spans(spans[0][0], spans[-1][1])):
            return 0
        each = [self._spans(*span) for span in spans]
        there = self._least(self.frame(spark, call, spans[0][0], spans[-1][1]))
        gone = [
            place
            for place, of in enumerate(each, 1)
            for topic, partitions in of.items()
            for number, (first, last) in partitions.items()
            if there.get((topic, number), last) > max(first, 0)
        ]
        return max(gone, default=0)


@attrs.frozen(eq=False)
class UnknownSource:
    """A source that cannot be read again, such as a socket."""

    offset: str | None

    def fits(self, call: ReadCall) -> bool:
        return self.offset is None or call.format not in (*FORMATS, "kafka", "delta")

    def frame(self, spark: SparkSession, call: ReadCall, start: str | None, end: str | None) -> DataFrame:
        raise StateError(
            f"replay: a source of format {call.format!r} cannot be read again; files ({', '.join(FORMATS)}), Kafka topics and Delta "
            "tables can: write the rows to one of these, and replay a query that reads it"
        )

    def lost(self, spark: SparkSession, call: ReadCall, spans: Sequence[tuple[str | None, str | None]]) -> int:
        return 0


def past_sources(spark: SparkSession, checkpoint: str, query: PastQuery) -> dict[int, PastSource]:
    """The sources of a query by their places in its offsets, without heartbeats.

    Raises:
        StateError: the folders of its sources are not those that its offsets need.
    """
    last, folder = query.batches[-1].ends, f"{checkpoint.rstrip('/')}/sources"
    logged = [place for place in query.sources if _kind(last[place]) in (PastFiles, PastTopics)]
    there = {number for number in range(len(last)) if _has_files(spark, f"{folder}/{number}")}
    for numbers in _numberings(query):
        may = {numbers[place] for place in query.sources}  # sources that are not known may have a folder
        if {numbers[place] for place in logged} <= there <= may:
            places = [place for place in query.sources if numbers.index(numbers[place]) == place]
            return {place: _source(spark, f"{folder}/{numbers[place]}", last[place]) for place in places}
    raise StateError(
        f"replay: the folder 'sources' of checkpoint {printable(checkpoint)} has {sorted(there)}, which its offsets do not need: it is "
        "not as Spark writes it; copy the whole checkpoint"
    )


def _numberings(query: PastQuery) -> Iterator[list[int]]:
    """Numbers of the folders of sources, by their places in the offsets.

    A DataFrame that a query has several times, such as heartbeats, may be one source, with equal offsets at each place, and one folder.
    """
    lines = list(zip(*((*zip(one.starts, one.ends, strict=True),) for one in query.batches), strict=True))
    heartbeats = set(range(len(lines))) - set(query.sources)
    for merged in (set[int](), heartbeats, set(range(len(lines)))):
        numbers: list[int] = []
        for place, line in enumerate(lines):
            same = next((one for one in range(place) if {one, place} <= merged and lines[one] == line), None)
            numbers.append(max(numbers, default=-1) + 1 if same is None else numbers[same])
        yield numbers


def _has_files(spark: SparkSession, folder: str) -> bool:
    try:
        return bool(spark.read.text(folder).columns)
    except AnalysisException:
        return False


def _kind(offset: str | None) -> type[PastFiles | PastTopics | PastDelta | UnknownSource]:
    said: Any = {} if offset is None else json.loads(offset)
    if isinstance(said, dict) and set(said) == {"logOffset"}:
        return PastFiles
    if isinstance(said, dict) and "reservoirId" in said:
        return PastDelta
    if isinstance(said, dict) and said and all(isinstance(one, dict) for one in said.values()):
        return PastTopics
    return UnknownSource


def _source(spark: SparkSession, folder: str, offset: str | None) -> PastSource:
    kind = _kind(offset)
    if kind is PastFiles:
        return PastFiles(sorted(set(_logged_files(spark, folder))))
    if kind is PastTopics:
        begun = spark.read.text(f"{folder}/0", wholetext=True).collect()[0][0]
        return PastTopics(begun.split("\n", 1)[1].strip(), frozenset(json.loads(offset or "{}")))
    if kind is PastDelta:
        return PastDelta(spark, Position.read(offset or "").table)
    return UnknownSource(offset)


def _logged_files(spark: SparkSession, folder: str) -> Iterator[tuple[int, str]]:
    """Each path in the log of a source of files, with the number of the batch that took it."""
    lines = spark.read.options(ignoreMissingFiles=True).text(folder).where(F.col("value").startswith("{")).collect()
    for line in lines:
        entry = json.loads(line["value"])
        yield int(entry["batchId"]), entry["path"]


class PastReader:
    """In place of Spark's ``DataStreamReader``."""

    def __init__(self, load: Callable[[ReadCall], DataFrame]) -> None:
        self._load, self._call = load, ReadCall("parquet", {}, None)

    def format(self, source: str) -> PastReader:
        """Its format."""
        return self._with(format=source.rpartition(".")[2] if source.lower().endswith("kafka") else source.lower())

    def schema(self, schema: Any) -> PastReader:
        """Its schema."""
        return self._with(schema=schema)

    def option(self, key: str, value: Any) -> PastReader:
        """An option."""
        return self.options(**{key: value})

    def options(self, **options: Any) -> PastReader:
        """Options."""
        texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}
        return self._with(
            options={**self._call.options, **{name: texts[name] for name in texts if options[name] is not None}}
        )

    def load(self, path: Any = None, format: str | None = None, schema: Any = None, **options: Any) -> DataFrame:  # noqa: A002
        """The rows."""
        reader = self.options(**options)
        reader = reader if format is None else reader.format(format)
        reader = reader if schema is None else reader.schema(schema)
        given = path if path is not None else reader._call.option("path")  # noqa: SLF001 - its own
        return reader._load(attrs.evolve(reader._call, paths=() if given is None else (str(given),)))  # noqa: SLF001

    def table(self, tableName: str) -> DataFrame:  # noqa: N803 - Spark's name of it
        """The rows of a table."""
        return self.format(TABLE).load(tableName)

    def _with(self, **changes: Any) -> PastReader:
        made = PastReader(self._load)
        made._call = attrs.evolve(self._call, **changes)
        return made

    def __getattr__(self, name: str) -> Callable[..., DataFrame]:
        """``json``, ``csv`` and other formats of files, as calls."""
        if name not in FORMATS:
            raise AttributeError(
                f"replay(input=...): readStream.{name} cannot be read again; files, Kafka topics and Delta tables can"
            )
        return lambda path, schema=None, **options: self.load(path, name, schema, **options)


class PastSession:
    """A session whose ``readStream`` gives the rows of one batch. All else is the session's.

    Args:
        spark: the session.
        load: the rows of a call of ``readStream``.
    """

    def __init__(self, spark: SparkSession, load: Callable[[ReadCall], DataFrame]) -> None:
        self._spark, self._load = spark, load

    @property
    def readStream(self) -> Any:  # noqa: N802 - Spark's name of it
        """A reader of past rows."""
        return PastReader(self._load)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spark, name)


Make = Callable[[Any], Mapping[str | None, DataFrame]]
"""Makes the rows of each input from a session."""


@attrs.frozen(eq=False)
class PastInputs:
    """The inputs of a query, and which source each call of ``readStream`` made.

    Attributes:
        spark: the session.
        sources: by their places.
        make: makes the inputs.
        calls: the source's place and the arguments of each call, in order.
    """

    spark: SparkSession
    sources: Mapping[int, PastSource]
    make: Make
    calls: Sequence[tuple[int, ReadCall]]

    @classmethod
    def of(cls, spark: SparkSession, sources: Mapping[int, PastSource], make: Make, query: PastQuery) -> PastInputs:
        """Find the source of each call (OptionError: a call fits none, or a source no call)."""
        calls: list[tuple[int, ReadCall]] = []
        ends = query.batches[-1].ends

        def load(call: ReadCall) -> DataFrame:
            if call.format == "kafka":
                check_connector(spark, "kafka", "replay(input=...)")
            left = {place: source for place, source in sources.items() if place not in dict(calls)}
            place = next((place for place, source in left.items() if source.fits(call)), None)
            if place is None:
                raise OptionError(
                    f"replay(input=...): it reads {_shown(call)}, which is not a source of this checkpoint's query; its sources are "
                    f"{'; '.join(map(_described, sources.values()))}. Give the function that makes the query's stream"
                )
            calls.append((place, call))
            return sources[place].frame(spark, call, ends[place], ends[place])

        make(PastSession(spark, load))
        called = dict(calls)
        missing = [place for place in sources if place not in called]
        if missing:
            raise OptionError(
                f"replay(input=...): the streams that it makes: {len(calls)}; the sources of the query: {len(sources)}: "
                f"{'; '.join(map(_described, sources.values()))}. Give the function that makes all streams, from the session that it is given"
            )
        return cls(spark, sources, make, calls)

    def frames(self, batch: PastBatch) -> Mapping[str | None, DataFrame]:
        """The rows of each input in a batch."""
        left = iter(self.calls)

        def load(call: ReadCall) -> DataFrame:
            place, _ = next(left)
            return self.sources[place].frame(self.spark, call, batch.starts[place], batch.ends[place])

        return self.make(PastSession(self.spark, load))

    def has_rows(self, batch: PastBatch) -> bool:
        """Whether a source has rows in a batch."""
        return any(batch.starts[place] != batch.ends[place] for place in self.sources)

    def lost(self, batches: Sequence[PastBatch]) -> int:
        """The number of the first batches whose rows the sources no longer have in full."""
        return max(
            self.sources[place].lost(self.spark, call, [(one.starts[place], one.ends[place]) for one in batches])
            for place, call in self.calls
        )


def files_as_they_are(sources: Mapping[int, PastSource], names: Sequence[str | None]) -> Make:
    """Makes inputs of files by their suffixes, if no function is given.

    Raises:
        OptionError: a source is not of files, or of files without column names and types.
    """
    formats: list[tuple[str, str]] = []
    for source in sources.values():
        path = source.files[0][1] if isinstance(source, PastFiles) and source.files else ""
        suffix = path.rpartition(".")[2]
        if suffix not in ("parquet", "orc", "avro", "json"):
            raise OptionError(
                f"replay(...): {_described(source)}: give the function that makes the query's stream, and parses it: "
                "def events(spark): return spark.readStream...; replay(..., input=events), or --input app:events"
            )
        formats.append((suffix, path.rpartition("/")[0]))
    if len(formats) != len(names):
        raise OptionError(
            f"replay(...): the query has {len(formats)} sources, and the pipeline {len(names)} inputs; give the functions that make "
            "them: input={'clicks': clicks, ...}, or --input clicks=app:clicks"
        )

    def make(session: Any) -> Mapping[str | None, DataFrame]:
        read = [session.readStream.format(name).load(folder) for name, folder in formats]
        return dict(zip(names, read, strict=True))

    return make


def made_by(given: Any, names: Sequence[str | None]) -> Make:
    """Makes inputs by the functions of a job.

    Args:
        given: a function of the session; for several inputs one that returns a dict, or a dict of functions.
        names: of the inputs.

    Raises:
        OptionError: neither a function nor functions.
    """
    each: Any = given if isinstance(given, Mapping) else {None: given}
    for name, one in each.items():
        if not callable(one):
            raise OptionError(
                f"replay(input={printable(one)}): must be the function that makes the query's stream from a session: "
                "def events(spark): return spark.readStream..."
            )
        if isinstance(given, Mapping) and name not in names:
            raise OptionError(
                f"replay(input={{{name!r}: ...}}): the pipeline's inputs are {', '.join(map(repr, names))}"
            )

    def make(session: Any) -> Mapping[str | None, DataFrame]:
        made: dict[str | None, DataFrame] = {}
        for name, one in each.items():
            frame: Any = one(session)
            made |= dict(frame) if isinstance(frame, Mapping) else {name: frame}
        missing = [name for name in names if not isinstance(made.get(name), DataFrame)]
        if missing:
            wanted = (
                "a DataFrame"
                if names == [None]
                else f"a dict with a DataFrame for each of {', '.join(map(repr, names))}"
            )
            raise OptionError(f"replay(input=...): the function returned {_kinds(made)}; it must return {wanted}")
        return made

    return make


def _kinds(made: Mapping[str | None, Any]) -> str:
    return ", ".join(f"{'' if name is None else f'{name}: '}{type(one).__name__}" for name, one in made.items())


def _described(source: PastSource) -> str:
    if isinstance(source, PastFiles):
        return f"files such as {printable_text(source.files[0][1])}" if source.files else "files"
    if isinstance(source, PastTopics):
        return f"Kafka's {', '.join(sorted(source.topics))}"
    if isinstance(source, PastDelta):
        return f"the Delta table with the id {source.table} (a table that is created again has another id)"
    return "one without offsets of files, Kafka or Delta"


def _shown(call: ReadCall) -> str:
    of = call.paths[0] if call.paths else call.option("subscribe") or call.option("subscribePattern") or ""
    return f"{call.format} {printable_text(of)}".strip()


def _literal(path: str) -> str:
    """A path up to its first wildcard."""
    return re.split(r"[*?\[{]", path)[0]


def union(frames: Iterable[DataFrame]) -> DataFrame:
    """The union of rows with the same columns."""
    first, *others = frames
    for other in others:
        first = first.union(other)
    return first
