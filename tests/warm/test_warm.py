"""The warm Python does what a new one would do."""

import os
import subprocess
import sys
import time

import pytest

from tests.conftest import quick_settings
from tests.warm import archive

pytestmark = pytest.mark.xdist_group("connect")  # where such a Python is started anyway

SAYS = """
import os, sys
print(sys.argv, os.getcwd(), os.environ["OWN"], __name__, sys.path[0], hash("a"), flush=True)
print("pandas" in sys.modules, flush=True)
print(sys.stdin.read().upper(), file=sys.stderr, flush=True)
sys.exit(7)
"""
WAITS = """
import os, time
print(os.getpid(), flush=True)
time.sleep(600)
"""


@pytest.fixture
def python(warm_python):
    if warm_python is None:
        pytest.skip("processes are forked on Linux only")
    return warm_python


def test_a_module_runs_as_in_a_new_process_with_all_imported_already(python, tmp_path):
    (tmp_path / "says.py").write_text(SAYS)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONHASHSEED": "0", "OWN": "value"}

    def run(executable):
        command = [executable, "-m", "says", "one two", "--three"]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, input="given\n", capture_output=True, text=True, check=False
        )

    new, warm = run(sys.executable), run(python)
    assert (warm.returncode, warm.stderr) == (new.returncode, new.stderr) == (7, "GIVEN\n\n")
    assert "'one two', '--three'" in warm.stdout
    said, imported = warm.stdout.splitlines()
    assert [said, "False"] == new.stdout.splitlines()
    assert imported == "True"


def test_a_line_runs_as_in_a_new_process(python):
    said = subprocess.run(
        [python, "-c", "import sys; print(sys.argv)", "x"], capture_output=True, text=True, check=True
    )
    assert said.stdout == "['-c', 'x']\n"


def test_a_process_ends_with_the_one_that_asked_for_it(python, tmp_path):
    (tmp_path / "waits.py").write_text(WAITS)
    with subprocess.Popen([python, "-m", "waits"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as asking:
        process = int(asking.stdout.readline())
        os.kill(process, 0)
        asking.kill()
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    pytest.fail("it still runs")


@pytest.mark.parametrize(("bytes_", "read"), [(None, False), (b"", False), (b"classes", True)])
def test_a_session_reads_the_archive_of_classes_if_there_is_one(monkeypatch, tmp_path, bytes_, read):
    monkeypatch.setattr(archive, "ARCHIVE", tmp_path / "spark.jsa")
    if bytes_ is not None:
        archive.ARCHIVE.write_bytes(bytes_)
    assert (str(archive.ARCHIVE) in quick_settings()["spark.driver.extraJavaOptions"]) is read
