import socket
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.spark
def test_scripts_streams_and_batches_run_on_spark_connect():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = Path(__file__).with_name("connect_session.py")
    done = subprocess.run([sys.executable, script, str(port)], capture_output=True, text=True, timeout=300, check=False)
    assert "all went well" in done.stdout, done.stderr[-3000:]
