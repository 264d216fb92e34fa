"""The message of `make` when Python is missing or too old."""

import os
import subprocess
import sys


def run(root, python):
    environment = {**os.environ, "PYTHON": str(python)}
    script = root / "tools" / "find_python.sh"
    return subprocess.run(["sh", script], env=environment, capture_output=True, text=True, check=False)


def stand_in(path, refused):
    """A Python that runs all but programs with ``refused`` in them, which it fails; it says it is 3.9.1."""
    path.write_text(f"""#!/bin/sh
case "$2" in
*"{refused}"*) exit 1 ;;
*sys.version.split*) echo "{path} is Python 3.9.1" ;;
*) exec "{sys.executable}" "$@" ;;
esac
""")
    path.chmod(0o755)
    return path


def test_python_that_fits_is_printed(root):
    result = run(root, sys.executable)
    assert (result.returncode, result.stdout) == (0, f"{sys.executable}\n")


def test_missing_python_is_reported_with_the_fix(root, tmp_path):
    result = run(root, tmp_path / "nothing")
    assert result.returncode == 1
    assert result.stderr.startswith("Python is missing: beamish needs Python 3.11 or newer.\n")
    assert "apt-get install python3" in result.stderr


def test_python_that_is_too_old_is_named_with_its_version(root, tmp_path):
    result = run(root, stand_in(tmp_path / "old", "(3, 11)"))
    assert result.returncode == 1
    assert result.stderr.startswith("Python is too old: beamish needs Python 3.11 or newer.")
    assert f"{tmp_path}/old is Python 3.9.1\n" in result.stderr


def test_python_without_venv_is_reported_with_the_package_to_install(root, tmp_path):
    result = run(root, stand_in(tmp_path / "bare", "ensurepip"))
    assert result.returncode == 1
    assert "its venv or ensurepip module is missing" in result.stderr
    assert f"python{sys.version_info[0]}.{sys.version_info[1]}-venv" in result.stderr
