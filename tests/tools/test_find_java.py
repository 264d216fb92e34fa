"""The message of `make` when Java is missing or too old."""

import shutil
import subprocess

import pytest


@pytest.fixture
def machine(root, tmp_path):
    """A machine with a shell, sed and head, and only the Javas that a test puts on it."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "sed", "head"):
        (programs / name).symlink_to(shutil.which(name))

    def run(**environment):
        script = root / "tools" / "find_java.sh"
        environment = {"PATH": str(programs), "JAVA_PLACES": str(tmp_path / "jvm"), **environment}
        return subprocess.run(["sh", script], env=environment, capture_output=True, text=True, check=False)

    return tmp_path, run


def java(home, version):
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"""#!/bin/sh
echo 'openjdk version "{version}" 2024-01-16' >&2
if [ "$1" = -XshowSettings:properties ]; then echo '    java.home = {home}' >&2; fi
""")
    program.chmod(0o755)
    return str(home)


def test_missing_java_is_reported_with_the_fix(machine):
    _, run = machine
    result = run()
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.startswith("Java is missing: Spark 4 needs Java 17 or 21.\n")
    assert "apt-get install openjdk-17-jre-headless" in result.stderr


@pytest.mark.parametrize(("version", "major"), [("1.8.0_402", "8"), ("11.0.22", "11"), ("16", "16")])
def test_java_that_is_too_old_is_named_with_its_version(machine, version, major):
    tmp_path, run = machine
    result = run(JAVA_HOME=java(tmp_path / "old", version))
    assert result.returncode == 1
    assert result.stderr.startswith("Java is too old: Spark 4 needs Java 17 or 21.")
    assert f"JAVA_HOME: {tmp_path}/old/bin/java is Java {major}\n" in result.stderr
    assert "brew install openjdk@21" in result.stderr


@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.2", "25-ea"])
def test_java_that_fits_is_printed(machine, version):
    tmp_path, run = machine
    result = run(JAVA_HOME=java(tmp_path / "new", version))
    assert (result.returncode, result.stdout, result.stderr) == (0, f"{tmp_path}/new\n", "")


def test_java_that_fits_is_found_beside_one_that_is_too_old(machine):
    tmp_path, run = machine
    java(tmp_path / "jvm" / "java-17-openjdk", "17.0.15")
    result = run(JAVA_HOME=java(tmp_path / "old", "11.0.22"))
    assert (result.returncode, result.stdout) == (0, f"{tmp_path}/jvm/java-17-openjdk\n")
