"""examples/declarative, run by `spark-pipelines run`: panes in a streaming table, live figures in a view."""

import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = Path(sys.executable).parent / "spark-pipelines"

pytestmark = pytest.mark.servers


def spark_pipelines(folder, *arguments):
    if not program().exists():
        pytest.skip("no spark-pipelines: PySpark 4.1 and later bring it")
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    environment |= {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [str(program()), *arguments, "--spec", str(folder / "project" / "spark-pipeline.yml")]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


def program():
    import pyspark

    beside = Path(pyspark.__file__).parent / "bin" / "spark-pipelines"
    return PROGRAM if PROGRAM.exists() else beside


def project(folder):
    """The example with folders of its own."""
    shutil.copytree(ROOT / "examples" / "declarative", folder / "project")
    spec = folder / "project" / "spark-pipeline.yml"
    text = spec.read_text().replace("/tmp/beamish-plays", str(folder / "storage"))
    spec.write_text(text.replace("plays.folder: /tmp/plays", f"plays.folder: {folder / 'plays'}"))
    (folder / "plays").mkdir()


def write_plays(folder, number, plays):
    lines = [json.dumps({"ts": f"2024-05-01T10:{minute:02}:05Z", "team": team, "score": 1}) for minute, team in plays]
    (folder / "plays" / f"{number}.json").write_text("\n".join(lines))


def live(folder):
    rows = pq.read_table(folder / "spark-warehouse" / "live").to_pylist()
    return {(row["team"], row["window"]["start"].minute): (row["plays"], row["total"]) for row in rows}


def expected(*files):
    figures = defaultdict(int)
    for plays in files:
        for minute, team in plays:
            figures[team, minute] += 1
    return {key: (plays, plays) for key, plays in figures.items()}


def test_a_project_gives_the_figures_of_its_plays(tmp_path):
    """One run: the catalog of a local session is gone with it, so a second one would not know the tables."""
    project(tmp_path)
    first, second = [(0, "red"), (0, "red"), (1, "blue")], [(1, "blue"), (1, "red"), (9, "red")]
    write_plays(tmp_path, 0, first)
    write_plays(tmp_path, 1, second)
    spark_pipelines(tmp_path, "run")
    assert live(tmp_path) == expected(first, second)


def test_auto_cdc_accepts_the_changelog_in_a_dry_run(tmp_path):
    """Its target must be of a format that takes MERGE INTO, of which PySpark alone brings none."""
    project(tmp_path)
    spec = tmp_path / "project" / "spark-pipeline.yml"
    also = "libraries:\n  - glob:\n      include: auto_cdc/**\n"
    spec.write_text(spec.read_text().replace("libraries:\n", also))
    write_plays(tmp_path, 0, [(0, "red")])
    spark_pipelines(tmp_path, "dry-run")
