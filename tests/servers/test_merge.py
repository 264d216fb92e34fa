"""Tables of Delta and Iceberg, kept by a query that is killed after a batch that Spark has not noted, and started again."""

import json
import subprocess

import pytest

from tests.servers import lake
from tests.servers.killing import ROOT, rows_of_files, run, sessions, write_files

pytestmark = pytest.mark.servers


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_a_table_equals_the_batch_computation_though_its_query_was_killed(tmp_path, format_):
    files, told = given(tmp_path, format_)
    run("tests.servers.lake", python=lake.python(), killed=True, stop_in=2, stop_at="end", **told)
    run("tests.servers.lake", python=lake.python(), **told)
    assert table(asked(told | {"show": True})) == sessions(files)


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_a_dropped_or_newer_table_is_rejected(tmp_path, format_):
    files, told = given(tmp_path, format_)
    ran, dropped, rebuilt, restored, rows = asked(told | {"drop": True})
    assert (ran, rebuilt) == ("None", "None"), (ran, dropped, rebuilt)
    assert "The table or its database was deleted" in dropped
    assert "with other rows: the checkpoint was restored to an earlier batch" in restored
    assert table(rows) == sessions(files[:3])


SAID = {
    "restored": "batch 2 comes after batch 0, so the changes of batches between them are missing: the table was restored",
    "replaced": "no earlier batch is recorded for it, and batch 2 has only",
    "deleted": "removed rows from it, and later batches have only the changes since",
    "overwritten": "removed rows from it",
    "deleted, then compacted often": "removed rows from it",
}
ACCEPTED = {"deleted", "overwritten", "deleted, then compacted often"}


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_a_table_that_others_changed_is_rejected(tmp_path, format_):
    _, told = given(tmp_path, format_)
    found = asked(told | {"undo": True})
    (same, others), rows = found.pop("replayed")
    assert (same, rows) == ("", [["blue", 4], ["red", 3]])
    assert "batch 3 was written before and now changes other rows" in others
    for name, (said, rows) in found.items():
        refused, *after = said
        assert SAID.get(name, "") in refused, (name, said)
        assert bool(refused) == (name in SAID), (name, said)
        assert after == ([""] if name in ACCEPTED else []), (name, said)
        assert (["green", 1] in rows) == (name not in {"restored", "replaced"}), (name, rows)


def given(tmp_path, format_):
    lake.python()
    lake.check_packages(format_)
    files = rows_of_files(files=4)
    write_files(tmp_path / "rows", files)
    warehouse = str(tmp_path / "warehouse")
    return files, {
        "table": lake.table(format_, warehouse),
        "format": format_,
        "settings": lake.packages(format_) | lake.confs(format_, warehouse),
        "rows": str(tmp_path / "rows"),
        "checkpoint": str(tmp_path / "checkpoint"),
        "halted": str(tmp_path / "halted"),
    }


def asked(told):
    """The output of tests.servers.lake."""
    command = [lake.python(), "-m", "tests.servers.lake", json.dumps(told)]
    return json.loads(
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    )


def table(rows):
    return sorted(map(tuple, rows), key=repr)
