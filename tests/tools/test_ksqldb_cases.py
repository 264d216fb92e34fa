"""tools/ksqldb_cases.py: statements of cases in ksqlDB's form are counted, once each, with the reason of a refusal."""

import json
import subprocess
import sys

import pytest

CASES = {
    "tests": [
        {
            "statements": [
                "CREATE STREAM s (k INT KEY, v INT) WITH (kafka_topic='t', value_format='JSON');",
                "CREATE TABLE a AS SELECT k, SUM(v) FROM s GROUP BY k;",
                "CREATE TABLE b AS SELECT k, COUNT() FROM s WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY k;",
            ]
        },
        {"statements": ["CREATE TABLE a AS SELECT k, SUM(v) FROM s GROUP BY k;"]},
        {"statements": ["CREATE TABLE c AS SELECT k, TOTALS(v) FROM s GROUP BY k;"]},
        {"statements": ["SELECT k FROM s GROUP BY k;"], "expectedException": {"type": "KsqlException"}},
    ]
}


@pytest.mark.dear  # starts processes
def test_statements_that_group_are_counted(root, tmp_path):
    folder = tmp_path / "query-validation-tests"
    folder.mkdir()
    (folder / "some.json").write_text("// of our own\n" + json.dumps(CASES))

    def counted(*options):
        command = [sys.executable, str(root / "tools/ksqldb_cases.py"), str(tmp_path), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
        return done.stdout.splitlines()

    said, why, statement = counted("--refused")
    assert said == "2 of 3 statements are taken"
    assert why.startswith("   1  TOTALS")
    assert statement.strip() == CASES["tests"][2]["statements"][0]
    assert counted("--windowed") == ["1 of 1 statements are taken"]


def of_table(statement, rows, outputs):
    """A case over a table of ours."""
    declared = (
        "CREATE TABLE t (id INT PRIMARY KEY, city STRING, n INT) WITH (kafka_topic='in', value_format='DELIMITED');"
    )
    inputs = [{"topic": "in", "key": key, "value": value, "timestamp": at} for at, (key, value) in enumerate(rows)]
    return {
        "statements": [declared, f"CREATE TABLE out AS {statement};"],
        "inputs": inputs,
        "outputs": [{"topic": "OUT", "key": key, "value": value} for key, value in outputs],
    }


@pytest.mark.dear  # starts processes
def test_statements_over_tables_are_compared(root, tmp_path):
    moved = [(1, "rome,5"), (1, "oslo,5"), (2, "oslo,1"), (2, None)]
    counted = "SELECT city, COUNT(*) FROM t GROUP BY city"
    cases = [
        of_table(counted, moved, [("rome", "1"), ("rome", "0"), ("oslo", "1")]),
        of_table(counted, moved, [("rome", "1"), ("oslo", "1")]),
        of_table("SELECT city, SUM(n) AS s FROM t GROUP BY city", moved, [("oslo", {"S": 5})]),
        of_table("SELECT city, OTHERS(n) AS s FROM t GROUP BY city", moved, []),
    ]
    (tmp_path / "query-validation-tests").mkdir()
    (tmp_path / "query-validation-tests" / "some.json").write_text(json.dumps({"tests": cases}))
    command = [sys.executable, str(root / "tools/ksqldb_cases.py"), str(tmp_path), "--tables"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    said, wrong, *_ = done.stdout.splitlines()
    assert said == "2 of 4 statements over a table agree"
    assert "COUNT(*)" in wrong
