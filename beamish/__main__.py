"""``python -m beamish``: inspect, watch or replay a checkpoint, explain or check a pipeline."""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from beamish.errors import BeamishError, OptionError, PipelineError
from beamish.pipeline import Pipeline

_INPUT = re.compile(r"(\w+)=(.+)", re.DOTALL)
"""The rows of an input of several."""
_PLACE = re.compile(r"[\w./\\-]+:[\w.]+")
"""A module or file, and a name in it."""
_BAR = 40
"""Columns of a progress bar."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; returns the exit code: 0, or 1 with an error on stderr, or a law that does not hold."""
    asked = _parser().parse_args(arguments)
    try:
        print(asked.run(asked))  # noqa: T201 - it is a program
    except (BeamishError, *asked.failures) as error:
        print(f"beamish: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m beamish", description="Windows, triggers and panes on Spark.")
    parser.set_defaults(failures=())
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    inspect = commands.add_parser(
        "inspect",
        help="the contents of a checkpoint, and why a window has not fired",
        description="The contents of the checkpoint of a running or stopped query; with --key or --window why a window has not fired.",
    )
    inspect.add_argument("checkpoint", help="the query's checkpointLocation")
    inspect.add_argument(
        "--key", action="append", default=[], metavar="NAME=VALUE", help="a key column and its value; may be repeated"
    )
    inspect.add_argument(
        "--window", metavar="TIME", help="its start, or a time in it: 2026-01-01T10:14, UTC by default"
    )
    inspect.add_argument("--stage", type=int, metavar="N", help="the number of the stage, if several have windows")
    inspect.add_argument("--batch", type=int, metavar="N", help="after this batch; default: the last one")
    inspect.add_argument("--remote", metavar="URL", help="a Spark Connect server, such as sc://localhost:15002")
    inspect.set_defaults(run=_inspect)
    watch = commands.add_parser(
        "watch",
        help="a page beside a query: watermarks, open windows, state, and why a window has not fired",
        description="Serve a page about the checkpoints of running or stopped queries, read only. A batch is read when it is committed.",
    )
    watch.add_argument("checkpoints", nargs="+", metavar="CHECKPOINT", help="a query's checkpointLocation")
    watch.add_argument("--port", type=int, default=8450, metavar="N", help="default: 8450; 0: any free one")
    watch.add_argument("--every", default="10s", metavar="SPAN", help="how often the log is read; default: 10s")
    watch.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="another address than loopback; a token is printed then"
    )
    of_each = "of several checkpoints one for each, in their order"
    watch.add_argument(
        "--panes",
        action="append",
        default=[],
        metavar="TABLE",
        help=f"the table or Parquet folder with the panes; {of_each}",
    )
    watch.add_argument(
        "--dropped", action="append", default=[], metavar="TABLE", help=f"the same with the dropped rows; {of_each}"
    )
    watch.add_argument(
        "--metrics",
        action="append",
        default=[],
        metavar="URL",
        help=f"the address or file of bm.Listener's metrics; {of_each}",
    )
    watch.add_argument(
        "--pipeline", metavar="MODULE:NAME", help="the query's, if it has functions or classes of your own"
    )
    watch.add_argument("--remote", metavar="URL", help="a Spark Connect server, such as sc://localhost:15002")
    watch.set_defaults(run=_watch)
    explain = commands.add_parser(
        "explain", help="explain a pipeline", description="Explain a pipeline, stage by stage."
    )
    explain.add_argument("pipeline", metavar="MODULE:NAME", help="its module and name, such as jobs.scores:pipeline")
    explain.set_defaults(run=_explain)
    check = commands.add_parser(
        "check",
        help="check a pipeline by all laws on drawn scripts",
        description="Check a pipeline on drawn scripts, by all laws that apply to it: beamish.testing.laws.check. The exit code is 1 where a law does not hold.",
    )
    check.add_argument("pipeline", metavar="MODULE:NAME", help="its module or file and name: jobs/visits.py:pipeline")
    check.add_argument(
        "--rows",
        action="append",
        required=True,
        metavar="DDL",
        help="the schema of its rows: 'user string, ts timestamp'; of several inputs one for each: NAME='...'",
    )
    check.add_argument(
        "--expected",
        metavar="QUERY",
        help="what is expected: a query over the table rows, or MODULE:NAME of a function",
    )
    check.add_argument("--examples", type=int, default=200, metavar="N", help="the number of examples; default: 200")
    check.add_argument("--seed", type=int, default=0, metavar="N", help="another seed draws others; default: 0")
    check.add_argument("--disorder", metavar="SPAN", help="how far the source's rows are out of order: '30 seconds'")
    check.add_argument(
        "--counts-firings",
        action="store_true",
        help="a stage may add up panes of the one before that are neither final nor retracted",
    )
    check.add_argument(
        "--on-spark", type=int, default=0, metavar="N", help="the number of examples on Spark; default: 0"
    )
    check.add_argument(
        "--picture", metavar="PATH", help="a timeline of the smallest script that breaks a law: .html, .png"
    )
    check.set_defaults(run=_check, failures=(AssertionError,))
    replay = commands.add_parser(
        "replay",
        help="reproduce what a query did with the rows of a key, as a test",
        description="A pytest file with the rows, watermarks and clock of the micro-batches of a query, from its checkpoint and its source.",
    )
    replay.add_argument("checkpoint", help="the query's checkpointLocation")
    replay.add_argument(
        "--pipeline",
        required=True,
        metavar="MODULE:NAME",
        help="its module or file and name, such as jobs.scores:pipeline",
    )
    replay.add_argument(
        "--key",
        action="append",
        default=[],
        metavar="JSON",
        help="""key columns and values: '{"team": "red"}', or team=red""",
    )
    replay.add_argument(
        "--window",
        metavar="TIME",
        help="compare only the windows that contain a time: 2026-01-01T10:14, UTC by default",
    )
    replay.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="MODULE:NAME",
        help="the function that makes the query's stream from a session; of several inputs one each: NAME=MODULE:NAME",
    )
    replay.add_argument(
        "--initial",
        action="append",
        default=[],
        metavar="MODULE:NAME",
        help="the function that makes a versioned table's initial rows from a session; of several tables one each: NAME=MODULE:NAME",
    )
    replay.add_argument("--panes", metavar="TABLE", help="what the query emitted: a table, a folder, or FORMAT:FOLDER")
    replay.add_argument("--record", metavar="PATH", help="the file of bm.Listener(record=...)")
    replay.add_argument(
        "--mask",
        action="append",
        default=[],
        metavar="COLUMN",
        help="replace its values by pseudonyms; may be repeated",
    )
    replay.add_argument("--to", metavar="PATH", help="the test to write: test_red.py")
    replay.add_argument("--remote", metavar="URL", help="a Spark Connect server, such as sc://localhost:15002")
    replay.set_defaults(run=_replay)
    return parser


def _inspect(asked: argparse.Namespace) -> str:
    from beamish.checkpoint.inspection import inspect
    from beamish.spark.runtime.session import reading_session

    found = inspect(reading_session(asked.remote), asked.checkpoint, batch=asked.batch)
    if asked.key or asked.window is not None:
        return found._asked_in_texts(asked.key, asked.window, asked.stage)  # noqa: SLF001 - of the command line alone
    return str(found)


def _watch(asked: argparse.Namespace) -> str:
    from beamish.dashboard.command import watch

    return watch(
        asked.checkpoints,
        port=asked.port,
        every=asked.every,
        host=asked.host,
        flow=None if asked.pipeline is None else pipeline_at(asked.pipeline, "watch --pipeline").flow,
        panes=asked.panes,
        dropped=asked.dropped,
        metrics=asked.metrics,
        remote=asked.remote,
    )


def _explain(asked: argparse.Namespace) -> str:
    return pipeline_at(asked.pipeline).explain()


def _check(asked: argparse.Namespace) -> str:
    from beamish.testing import laws

    rows = [_INPUT.fullmatch(one) for one in asked.rows]
    if not all(rows) and len(rows) > 1:
        raise OptionError(
            f"check --rows {asked.rows[0]!r}: of several inputs name each: --rows visits='user string, ts timestamp'"
        )
    expected = asked.expected
    if expected is not None and _PLACE.fullmatch(expected):
        expected = _named("check --expected", expected)
    options = {} if asked.disorder is None else {"disorder": asked.disorder}
    report = laws.check(
        pipeline_at(asked.pipeline, "check"),
        rows={found[1]: found[2] for found in rows if found} if all(rows) else asked.rows[0],
        expected=expected,
        examples=asked.examples,
        seed=asked.seed,
        picture=asked.picture,
        on_spark=asked.on_spark,
        counts_firings=asked.counts_firings,
        progress=_bar(asked.examples) if sys.stderr.isatty() else None,
        **options,
    )
    return str(report)


def _replay(asked: argparse.Namespace) -> str:
    from beamish.replays.replay import replay
    from beamish.spark.runtime.session import reading_session

    spark = reading_session(asked.remote)
    found = replay(
        spark,
        asked.checkpoint,
        _named("replay", asked.pipeline),
        key=_key(asked.key),
        window=asked.window,
        input=_functions("--input", asked.input),
        initial=_functions("--initial", asked.initial),
        panes=None if asked.panes is None else _table(spark, asked.panes),
        record=asked.record,
        mask=asked.mask,
    )
    if asked.to is None:
        return f"{found}\n\n{found.test(asked.pipeline)}"
    return f"{found}\nWritten: {found.save(asked.to, asked.pipeline)}"


def _functions(option: str, texts: Sequence[str]) -> Any:
    """The functions that an option names: of one input, or by the names of several; None: none."""
    given = [_INPUT.fullmatch(one) for one in texts]
    made = {found[1]: _named(f"replay {option}", found[2]) for found in given if found}
    if len(made) == len(given):
        return made or None
    if len(given) > 1:
        raise OptionError(f"replay {option} {texts[0]}: of several inputs name each: {option} orders={texts[0]}")
    return _named(f"replay {option}", texts[0])


def _key(texts: Sequence[str]) -> dict[str, Any] | None:
    """A key from texts: JSON objects, or ``name=value``."""
    key: dict[str, Any] = {}
    for text in texts:
        found = _INPUT.fullmatch(text)
        try:
            said = {found[1]: found[2]} if found else json.loads(text)
        except ValueError:
            said = None
        if not isinstance(said, dict):
            raise OptionError(f"""replay --key {text}: must be an object of JSON, '{{"team": "red"}}', or team=red""")
        key |= said
    return key or None


def _table(spark: Any, place: str) -> Any:
    """The rows of a table, by its name, its folder, or the format and the folder."""
    kind, colon, folder = place.partition(":")
    if colon and kind in ("delta", "iceberg", "parquet", "orc", "json"):
        return spark.read.format(kind).load(folder)
    return spark.read.parquet(place) if "/" in place else spark.read.table(place)


def _bar(examples: int) -> Callable[[int], None]:
    """Shows how many examples there are so far, on one line of stderr."""

    def show(so_far: int) -> None:
        done = min(so_far * _BAR // max(examples, 1), _BAR)
        end = "\n" if so_far == examples else ""
        print(f"\r[{'#' * done}{' ' * (_BAR - done)}] {so_far}/{examples}", end=end, file=sys.stderr, flush=True)  # noqa: T201

    return show


def pipeline_at(where: str, command: str = "explain") -> Pipeline:
    """The pipeline of a module.

    Raises:
        OptionError: not in the form MODULE:NAME, or no such module or name.
        PipelineError: not a pipeline.
    """
    found = _named(command, where)
    if not isinstance(found, Pipeline):
        raise PipelineError(f"{command} {where}: {found!r:.100} must be a pipeline, such as bm.Pipeline()...")
    return found


def _named(command: str, where: str) -> Any:
    """The value of a name in a module, or in a file.

    Raises:
        OptionError: not in the form MODULE:NAME, or no such module or name.
    """
    module, colon, name = where.rpartition(":")
    if not colon or not module or not name:
        raise OptionError(f"{command} {where}: must be MODULE:NAME, such as jobs.scores:pipeline")
    path = Path(module).resolve()
    for folder in [str(Path.cwd()), *([str(path.parent)] if path.suffix == ".py" else [])]:
        if folder not in sys.path:
            sys.path.insert(0, folder)
    try:
        found: Any = importlib.import_module(path.stem if path.suffix == ".py" else module)
    except ImportError as error:
        raise OptionError(f"{command} {where}: the module {module!r} cannot be imported from here: {error}") from None
    for part in name.split("."):
        if not hasattr(found, part):
            raise OptionError(f"{command} {where}: {module!r} has no {name!r}")
        found = getattr(found, part)
    return found


if __name__ == "__main__":
    sys.exit(main())
