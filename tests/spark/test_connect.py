import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.spark
def test_scripts_streams_and_batches_run_on_spark_connect():
    script = Path(__file__).with_name("connect_session.py")
    # A free port for the server, so that two of these can run side by side.
    environment = {**os.environ, "SPARK_TESTING": "1"}
    done = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert "all went well" in done.stdout, done.stderr[-3000:]
