"""The modules that importing beamish loads, and their names."""

import subprocess
import sys

import pytest


def loaded_by(statement):
    program = f"import sys; {statement}; print(*sorted(name.partition('.')[0] for name in sys.modules))"
    return set(
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    )


@pytest.mark.parametrize(
    "statement",
    ["import beamish", "import beamish.triggers, beamish.accumulations, beamish.testing"],
)
def test_import_loads_no_pyspark_and_no_pandas(statement):
    assert not {"pyspark", "py4j", "pandas"} & loaded_by(statement)


def test_import_loads_no_sqlite():
    assert "sqlite3" not in loaded_by("import beamish")
    assert "sqlite3" in loaded_by("import beamish; beamish.VersionedTable('1 day')")


def test_triggers_and_accumulations_are_installed_under_beamish_only():
    assert not {"triggers", "accumulations"} & loaded_by("import beamish.triggers, beamish.accumulations")


def test_public_names_are_there():
    import beamish
    import beamish.accumulations
    import beamish.triggers

    for module in (beamish, beamish.triggers, beamish.accumulations):
        for name in module.__all__:
            assert hasattr(module, name), f"{module.__name__}.{name}"
