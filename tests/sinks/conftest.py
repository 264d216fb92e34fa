"""Fixtures of sinks: a schema for tables in each database, and rows as changes."""

import pyarrow as pa
import pytest

from beamish.kernels.upserts import DELETED, SEQUENCE
from beamish.sinks.databases import database_of
from beamish.sinks.databases.batch import Batch
from beamish.sinks.databases.database import rows_of
from tests.servers.started import started
from tools.servers.postgresql import PostgreSql

IDENTITY = ("team", "window_start", "window_end")
TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema(
    [
        ("team", pa.string()),
        ("window_start", TIME),
        ("window_end", TIME),
        ("total", pa.int64()),
        (SEQUENCE, pa.int64()),
        (DELETED, pa.bool_()),
    ]
)
"""A table of totals per team and window."""


def change(team, start, total, sequence, *, deleted=False):
    """A row of SCHEMA; a window of a minute, times in seconds; start None: the global window."""
    bounds = (None, None) if start is None else (start * 1_000_000, (start + 60) * 1_000_000)
    return dict(zip(SCHEMA.names, (team, *bounds, total, sequence, deleted), strict=True))


def net(*changes, schema=SCHEMA, identity=IDENTITY):
    return Batch.net(pa.Table.from_pylist(list(changes), schema=schema), identity)


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("duckdb", marks=pytest.mark.dear),
        pytest.param("postgresql", marks=pytest.mark.servers),
    ]
)
def uri(request, tmp_path):
    """A database with nothing in it."""
    if request.param != "postgresql":
        yield f"{request.param}:///{tmp_path}/tables.{request.param}"
        return
    with started(PostgreSql).database() as uri:
        yield uri


@pytest.fixture
def ask(uri):
    """The result of a query as sorted tuples."""

    def ask(query):
        with database_of(uri).transaction() as cursor:
            return sorted(rows_of(cursor, query), key=repr)

    return ask
