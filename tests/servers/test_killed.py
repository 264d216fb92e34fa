"""A query is killed in the middle of a batch, and after a batch that Spark has not noted; then it is started again."""

import pytest

from beamish.sinks.databases import database_of
from beamish.sinks.databases.database import rows_of
from tests.servers.killing import rows_of_files, run, sessions, write_files
from tests.servers.started import started
from tools.servers.postgresql import PostgreSql

pytestmark = pytest.mark.servers

SECONDS = {
    "postgresql": "CAST(extract(epoch FROM {}) AS bigint)",
    "sqlite": "CAST(strftime('%s', {}) AS INTEGER)",
    "duckdb": "CAST(epoch({}) AS BIGINT)",
}


@pytest.fixture(params=["postgresql", "sqlite", "duckdb"])
def uri(request, tmp_path):
    if request.param == "postgresql":
        with started(PostgreSql).database() as uri:
            yield uri
    else:
        yield f"{request.param}:///{tmp_path}/tables.{request.param}"


@pytest.mark.parametrize("keep_deleted", [False, True])
def test_a_table_equals_the_batch_computation_though_its_query_was_killed_twice(uri, tmp_path, keep_deleted):
    files = rows_of_files()
    write_files(tmp_path / "rows", files)
    told = {
        "uri": uri,
        "keep_deleted": keep_deleted,
        "rows": str(tmp_path / "rows"),
        "checkpoint": str(tmp_path / "checkpoint"),
        "halted": str(tmp_path / "halted"),
    }
    run(**told, killed=True, stop_in=1, stop_at="statement")
    run(**told, killed=True, stop_in=3, stop_at="end")
    run(**told)
    assert table(uri, live="NOT _deleted" if keep_deleted else "TRUE") == sessions(files)


def table(uri, live):
    start, end = (SECONDS[uri.partition(":")[0]].format(name) for name in ("window_start", "window_end"))
    with database_of(uri).transaction() as cursor:
        return sorted(
            rows_of(cursor, f"SELECT team, {start}, {end}, total, plays FROM sessions WHERE {live}"), key=repr
        )
