"""The Spark part of the tests on several versions of PySpark and Python, and checkpoints that go from one to the next.

    python tools/versions.py [--versions 4.0:3.11 4.1:3.12 4.2:3.13 4.3:3.11] [--tests tests/spark/test_batch.py ...] [--folder build/versions]

For each pair an environment of its own is made (PySpark is 450 MB: minutes, once), the tests run in it, and each public call that reads
a checkpoint runs in a fresh process (tests/versions/fresh.py). A query runs whose beamish is an archive added to the session, by a Python
without beamish (tests/versions/shipped.py). Then the queries of tests/versions/go_on.py begin with the first pair and go on with each of
the others from the same checkpoints. The output must equal that of the last pair that runs all parts. A version of Python that the
machine has not is left out, and said. Ends with 1 if anything failed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
VERSIONS = ["4.0:3.11", "4.1:3.12", "4.2:3.13", "4.3:3.11"]
TESTS = [f"tests/spark/test_{name}.py" for name in ("batch", "stream", "checkpoint", "chain", "transcripts")]
CLOCKED = (
    "this pipeline needs the clock"  # how the warning of single batches begins; tests/versions/skipping.py skips it
)
NEEDED = ["pytest>=8.3,<9.2", "pytest-xdist>=3.6", "hypothesis>=6.100", "setuptools>=77"]


def find_python(version: str) -> str | None:
    """A Python of this version that runs: pyenv's, whose words on the PATH may only say that it is not chosen, or that of the PATH."""
    own = sorted(map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python")))
    tried = [*reversed(own), shutil.which(f"python{version}")]
    return next((one for one in tried if one and not subprocess.run([one, "-c", ""], check=False).returncode), None)  # noqa: S603


def environment(folder: Path, spark: str, python: str) -> str | None:
    """The Python of an environment with these versions, created if it does not exist; None: the machine has no such Python."""
    place = folder / f"pyspark-{spark}-python-{python}"
    own = place / "bin" / "python"
    if not (place / "made").exists():
        program = find_python(python)
        if program is None:
            return None
        subprocess.run([program, "-m", "venv", "--clear", place], check=True)  # noqa: S603 - our own words
        pip = [own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, f"pyspark[sql,connect]=={spark}.*", "-e", f"{ROOT}[demo]", *NEEDED], check=True)  # noqa: S603
        (place / "made").touch()
    return str(own)


def run(python: str, *arguments: str | Path) -> tuple[int, str]:
    """Run a module; return its exit code and the last line it printed."""
    return call(python, "-m", *arguments, cwd=ROOT, PYTHONPATH=str(ROOT))


def call(python: str, *arguments: str | Path, cwd: Path, **environment: str) -> tuple[int, str]:
    """Run a Python, also for Spark's workers; return its exit code and the last line it printed."""
    clean = {
        name: value for name, value in os.environ.items() if name not in ("SPARK_HOME", "PYTHONHOME", "PYTHONPATH")
    }
    environ = {**clean, "PYSPARK_PYTHON": python, **environment}
    done = subprocess.run(  # noqa: S603
        [python, *map(str, arguments)], cwd=cwd, env=environ, capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(done.stdout[-6000:], done.stderr[-3000:], sep="\n")
    return done.returncode, (done.stdout.strip() or " ").splitlines()[-1]


def given(folder: Path) -> dict[str, list[str]]:
    """The output of each query: its rows, in order of the parts; which batch of a part emitted them may differ."""
    found: dict[str, list[str]] = {}
    for name in sorted(path.name for path in folder.iterdir() if (path / "checkpoint").is_dir()):
        parts = sorted(path for path in (folder / name).iterdir() if path.name != "checkpoint")
        found[name] = [f"{part.name} {line}" for part in parts for line in _lines(part)]
    return found


def _lines(part: Path) -> list[str]:
    return [line for file in sorted(part.iterdir()) for line in file.read_text().splitlines()]


def fresh(python: str, folder: Path) -> list[str]:
    """The public calls that fail to read a checkpoint in a process that has run no query."""
    shutil.rmtree(folder, ignore_errors=True)
    code, words = run(python, "tests.versions.fresh", folder)
    calls = [] if code else words.split()
    failed = [call for call in calls if run(python, "tests.versions.fresh", folder, call)[0]]
    print(
        f"fresh processes: {len(calls) - len(failed)} calls read a checkpoint; failed: {', '.join(failed) or 'none'}",
        flush=True,
    )
    return failed if calls else ["tests.versions.fresh"]


def shipped(python: str, folder: Path) -> bool:
    """Whether a query runs whose beamish is an archive, by a Python that has all other packages."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "beamish", folder / "archive" / "beamish")
    archive = shutil.make_archive(str(folder / "beamish"), "zip", folder / "archive")
    program = shutil.copy(ROOT / "tests" / "versions" / "shipped.py", folder)
    subprocess.run([python, "-m", "venv", "--without-pip", folder / "bare"], check=True)  # noqa: S603
    (packages,) = (folder / "bare").glob("lib/*/site-packages")
    _, others = call(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder)
    (packages / "others.pth").write_text(others)  # an editable beamish is in a .pth file of theirs, which is not read
    code, _ = call(str(folder / "bare" / "bin" / "python"), program, archive, cwd=folder)
    print(f"beamish as an archive: {'FAILED' if code else 'runs'}", flush=True)
    return not code


def go_on(pythons: dict[str, str], folder: Path) -> bool:
    """Run one checkpoint through all versions, and all parts on the last one; return whether the outputs are equal."""
    last = list(pythons)[-1]
    for kind in ("through", "alone"):
        shutil.rmtree(folder / kind, ignore_errors=True)
        for part, name in enumerate(pythons):
            python = pythons[name if kind == "through" else last]
            code, _ = run(python, "tests.versions.go_on", folder / kind, str(part))
            if code:
                print(f"go on: part {part} by {name} failed")
                return False
    through, alone = given(folder / "through"), given(folder / "alone")
    for query, lines in alone.items():
        same = through.get(query) == lines
        print(f"go on: {query}: {len(lines)} rows {'are the same' if same else 'DIFFER: see ' + str(folder)}")
    return through == alone and all(alone.values())


def main() -> int:
    """Create environments, run tests and pass the checkpoint on; 1 if something failed."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--versions", nargs="+", default=VERSIONS, metavar="SPARK:PYTHON")
    parser.add_argument("--tests", nargs="*", default=TESTS)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "versions")
    said = parser.parse_args()
    pythons: dict[str, str] = {}
    failed = False
    for pair in said.versions:
        spark, _, python = pair.partition(":")
        found = environment(said.folder.absolute(), spark, python)
        if found is None:
            print(f"PySpark {spark}, Python {python}: left out, there is no such Python here")
            continue
        pythons[pair] = found
        if said.tests:
            begin = time.perf_counter()
            options = [
                "-n",
                "0",
                "-q",
                "-W",
                "default",
                "-W",
                f"error:{CLOCKED}",
                "-p",
                "tests.versions.skipping",
                "-m",
                "not deep or versions",
            ]
            code, words = run(found, "pytest", *options, *said.tests)
            failed |= code != 0
            print(f"PySpark {spark}, Python {python}: {words} ({time.perf_counter() - begin:.0f} s)", flush=True)
        failed |= bool(fresh(found, said.folder.absolute() / "fresh"))
        failed |= not shipped(found, said.folder.absolute() / "shipped")
    if len(pythons) > 1:
        failed |= not go_on(pythons, said.folder.absolute() / "checkpoints")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
