"""The alerts and the board in a real Prometheus, which reads ``bm.Listener``: Debian's package ``prometheus``."""

import shutil
import subprocess
import time

import pytest

import beamish as bm
from tests.servers.started import started
from tests.watching.board import BOARD, CLICKS, IDLE, RULES, expressions, progress, seen
from tools.servers.prometheus import Prometheus

pytestmark = [pytest.mark.servers]


def test_alerts_fire_in_their_cases():
    tool = shutil.which("promtool")
    if tool is None:
        pytest.skip("promtool is not installed: apt-get install prometheus")
    for asked in (["check", "rules", RULES.name], ["test", "rules", "beamish.rules.test.yml"]):
        done = subprocess.run([tool, *asked], cwd=RULES.parent, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_evaluates_each_expression_of_the_board():
    listener = bm.Listener(port=0)
    server = started(Prometheus)
    server.scrape(listener.port, RULES)
    for batch in range(8):
        seen(listener, progress(CLICKS, IDLE, batch=batch))
        time.sleep(1)
    assert BOARD.exists()
    empty = []
    for one in expressions():
        if one.startswith("label_values"):
            continue
        asked = one.replace("$query", ".*").replace("[5m]", "[5s]").replace("[10m]", "[5s]")
        found = server.query(asked)
        assert found["status"] == "success", one
        empty += [one] * (not found["data"]["result"])
    # a rate above a limit, or an offset of an hour, has no value here
    assert all(" > " in one or "== 0" in one for one in empty), empty
    listener.close()
    assert server.rules() == 5
