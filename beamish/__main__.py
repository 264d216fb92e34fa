"""``python -m beamish``: inspect a checkpoint, or explain a pipeline."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from beamish.errors import BeamishError, OptionError, PipelineError
from beamish.pipeline import Pipeline


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; returns the exit code: 0, or 1 with an error on stderr."""
    asked = _parser().parse_args(arguments)
    try:
        print(asked.run(asked))  # noqa: T201 - it is a program
    except BeamishError as error:
        print(f"beamish: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m beamish", description="Windows, triggers and panes on Spark.")
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
    explain = commands.add_parser(
        "explain", help="explain a pipeline", description="Explain a pipeline, stage by stage."
    )
    explain.add_argument("pipeline", metavar="MODULE:NAME", help="its module and name, such as jobs.scores:pipeline")
    explain.set_defaults(run=_explain)
    return parser


def _inspect(asked: argparse.Namespace) -> str:
    from beamish.checkpoint.inspection import inspect
    from beamish.spark.runtime.session import reading_session

    found = inspect(reading_session(asked.remote), asked.checkpoint, batch=asked.batch)
    if asked.key or asked.window is not None:
        return found.asked_in_texts(asked.key, asked.window, asked.stage)
    return str(found)


def _explain(asked: argparse.Namespace) -> str:
    return pipeline_at(asked.pipeline).explain()


def pipeline_at(where: str) -> Pipeline:
    """The pipeline of a module.

    Raises:
        OptionError: not in the form MODULE:NAME, or no such module or name.
        PipelineError: not a pipeline.
    """
    module, colon, name = where.partition(":")
    if not colon or not module or not name:
        raise OptionError(f"explain {where}: must be MODULE:NAME, such as jobs.scores:pipeline")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
    except ImportError as error:
        raise OptionError(f"explain {where}: the module {module!r} cannot be imported from here: {error}") from None
    for part in name.split("."):
        if not hasattr(found, part):
            raise OptionError(f"explain {where}: {module!r} has no {name!r}")
        found = getattr(found, part)
    if not isinstance(found, Pipeline):
        raise PipelineError(f"explain {where}: {found!r:.100} must be a pipeline, such as bm.Pipeline()...")
    return found


if __name__ == "__main__":
    sys.exit(main())
