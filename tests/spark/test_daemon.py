"""The daemon of Spark's workers that has imported beamish before it forks them."""

import subprocess
import sys

import pytest

BEFORE_FORKING = """
import gc, runpy, sys
import pyspark.daemon
pyspark.daemon.manager = lambda: print(*(name in sys.modules for name in sys.argv[1:]), gc.get_freeze_count() > 50_000)
runpy.run_module("beamish.spark.daemon", run_name="__main__")
"""


@pytest.mark.dear
def test_before_it_forks_the_daemon_has_imported_the_modules_of_workers(root):
    names = ["pandas", "pyarrow.compute", "beamish.spark.operator.processor", "beamish.spark.rows.pack"]
    command = [sys.executable, "-c", BEFORE_FORKING, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    *imported, spared_from_collections = done.stdout.split()
    assert imported == ["True"] * len(names)
    assert spared_from_collections == "True"
