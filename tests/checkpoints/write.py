"""Write the checkpoints of this version's state format: ``python -m tests.checkpoints.write``. See cases.py.

What is written stays as it is: only new cases are written.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from base64 import b64encode
from pathlib import Path
from typing import Any

import attrs

from beamish.contract.operator import Operator
from beamish.contract.stored import DictStore
from beamish.local import Variation, run
from beamish.tables.notes import FORMAT
from tests.checkpoints.cases import CASES, ON_SPARK, Case

ROOT = "ROOT"
"""Stands in a kept checkpoint for the folder that it lies in."""
FOLDER = Path(__file__).parent / f"format{FORMAT}"


@attrs.frozen
class Kept:
    """Keeps the stores of the shards that are opened, in order."""

    stores: list[DictStore] = attrs.field(factory=list)

    def keep(self, operator: Operator) -> Operator:
        opened = operator.open

        def opening(store: DictStore) -> object:
            self.stores.append(store)
            return opened(store)

        operator.open = opening  # type: ignore[method-assign, assignment]
        return operator


def move(folder: Path, old: str, new: str) -> None:
    """Say in a checkpoint that it lies elsewhere: Spark notes the absolute path of the state's schema."""
    for path in folder.glob("checkpoint/state/*/_metadata/*/*"):
        path.write_text(path.read_text("utf-8").replace(f"file:{old}/", f"file:{new}/"), "utf-8")


def stores_of(case: Case) -> list[DictStore]:
    """The state after the first half, shard by shard, each stage after its inputs."""
    kept = Kept()

    def adapt(operator: Any) -> Operator:
        return kept.keep(operator if case.policy is None else attrs.evolve(operator, policy=case.policy))

    run(case.pipeline.flow, case.before.events, Variation(shards=2, adapt=adapt, fuse=case.fuse))
    return kept.stores


def write() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, case in CASES.items():
        if (FOLDER / f"{name}.json").exists():
            continue
        stores = [{entry: b64encode(value).decode() for entry, value in one.items()} for one in stores_of(case)]
        (FOLDER / f"{name}.json").write_text(json.dumps(stores, indent=1) + "\n", "utf-8")


def write_of_spark() -> None:
    from beamish.spark.scripted import trace_on_spark
    from tests.conftest import start_spark

    spark = start_spark()
    for name in (name for name in ON_SPARK if not (FOLDER / f"spark-{name}.zip").exists()):
        with tempfile.TemporaryDirectory() as folder:
            case = CASES[name]
            trace_on_spark(spark, case.pipeline.flow.completed, case.before.events, fuse=case.fuse, checkpoint=folder)
            for path in Path(folder).rglob("*.crc"):
                path.unlink()
            move(Path(folder), folder, ROOT)
            shutil.make_archive(str(FOLDER / f"spark-{name}"), "zip", folder)


if __name__ == "__main__":
    write()
    write_of_spark()
