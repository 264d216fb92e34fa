"""The protocol of an adapter: an engine in a process, cases on its standard input, answers on its standard output, a line of JSON each."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from conformance.suite import Answer, Case, question


class AdapterError(Exception):
    """An adapter ends, or writes no answer."""


def ask(command: str, some: Sequence[Case]) -> Iterator[Answer]:
    """The answers of an adapter, in order."""
    with subprocess.Popen(
        shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for case in some:
            process.stdin.write(json.dumps(question(case)) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
            if not line:
                raise AdapterError(f"the adapter ended at {case['id']}: {command}")
            answer = json.loads(line)
            if answer.get("id") != case["id"]:
                raise AdapterError(f"the adapter answered {answer.get('id')} to {case['id']}")
            yield answer
        process.stdin.close()


def serve(answer: Callable[[Case], Mapping[str, Any]]) -> None:
    """The loop of an adapter in Python: a line per case; what it raises is a failure."""
    for line in sys.stdin:
        case = json.loads(line)
        try:
            found = answer(case)
        except Exception as error:  # noqa: BLE001 - an answer too
            found = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps({"id": case["id"], **found}), flush=True)
