"""tools/ksqldb_cases.py: statements of cases in ksqlDB's form are counted, once each, with the reason of a refusal."""

import json
import subprocess
import sys

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
