"""Numbers, ids, retained windows and unmatched rows continue where a query was killed (rules/running.md#restart)."""

import pytest

from tests.servers.counted_query import PIPELINES
from tests.servers.killing import rows_of_files, run, write_files

pytestmark = pytest.mark.servers


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_output_is_the_same_though_the_query_was_killed_twice(pipeline, tmp_path):
    write_files(tmp_path / "rows", rows_of_files(files=5))
    came = {}
    for name, stops in {"whole": [], "killed": [(1, "before"), (3, "end")]}.items():
        folder = tmp_path / name
        (folder / "out").mkdir(parents=True)
        told = {
            "pipeline": pipeline,
            "rows": str(tmp_path / "rows"),
            "out": str(folder / "out"),
            "checkpoint": str(folder / "checkpoint"),
            "halted": str(folder / "halted"),
        }
        for batch, at in stops:
            run("tests.servers.counted_query", **told, killed=True, stop_in=batch, stop_at=at)
        run("tests.servers.counted_query", **told)
        came[name] = {path.name: path.read_text() for path in (folder / "out").iterdir()}
    assert came["killed"] == came["whole"]
    assert sum(len(text) for text in came["whole"].values()) > 500
