"""The serving table of examples/card_features.py has each card's last features."""

import random
import runpy
import sys

import pytest

from beamish.sinks.databases import database_of
from beamish.sinks.databases.database import rows_of
from beamish.testing import TestStream
from tests.servers.started import started
from tools.servers.postgresql import PostgreSql

NAMES = ("n_1h", "n_12h", "n_24h", "spent_1h", "spent_24h", "most_24h")


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.servers)])
def test_the_serving_table_has_the_last_features(kind, root, spark, tmp_path, monkeypatch):
    if kind == "sqlite":
        check(f"sqlite:///{tmp_path}/features.db", root, monkeypatch)
        return
    with started(PostgreSql).database() as url:
        check(url, root, monkeypatch)


def check(url, root, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["card_features", "--table", url])
    example = runpy.run_path(str(root / "examples" / "card_features.py"))
    assert example["main"]() == 0
    payments = example["some_payments"](random.Random(1))
    reached = max(row["paid"] for row in payments) - 5 * 60
    last = {}
    for pane in example["FEATURES"].run(TestStream().add(payments).advance_watermark_to(reached)):
        last[pane.key["card"]] = tuple(pane.values[name] for name in NAMES)
    with database_of(url).transaction() as cursor:
        found = {
            card: tuple(values) for card, *values in rows_of(cursor, f"SELECT card, {', '.join(NAMES)} FROM features")
        }
    assert found == last
    assert {card for card, values in found.items() if values[2]} == {"a", "b", "c"}
