"""The modules that importing beamish loads, and their names."""

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle

import beamish
import beamish as bm
import beamish.windows
from beamish import exports
from beamish.accumulations import Count, Sum
from beamish.spark.operator.processor import FromQuery, ShardProcessor, WakePolicy
from beamish.spark.rows.pack import source_packer

pytestmark = pytest.mark.dear


def printed_by(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def loaded_by(statement):
    return set(
        printed_by(f"import sys; {statement}; print(*sorted(name.partition('.')[0] for name in sys.modules))").split()
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
    for module in (beamish, beamish.triggers, beamish.accumulations):
        for name in module.__all__:
            assert hasattr(module, name), f"{module.__name__}.{name}"


PACKAGES = (beamish, beamish.accumulations, beamish.triggers, beamish.windows)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda one: one.__name__)
def test_type_checkers_and_users_import_a_name_from_the_same_module(package):
    tree = ast.parse(Path(package.__file__).read_text("utf-8"))
    declared = {
        name.name: one.module for one in ast.walk(tree) if isinstance(one, ast.ImportFrom) for name in one.names
    }
    lazy = {name: module for name, module in exports._LAZY[package.__name__].items() if module != f"beamish.{name}"}
    assert {name: module for name, module in declared.items() if name in lazy} == lazy
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert {*exports._LAZY[package.__name__], *functions} - {"__dir__"} == set(package.__all__)


def test_a_name_is_imported_when_it_is_first_used():
    program = "import beamish, sys; before = set(sys.modules); beamish.FixedWindows; print('beamish.windows.calendar' in sys.modules, 'beamish.pipeline' in before)"
    assert printed_by(program) == "False False"


def test_star_import_gives_every_public_name():
    program = "from beamish import *; import beamish; print(set(beamish.__all__) - set(globals()))"
    assert printed_by(program) == "set()"


def test_a_misspelt_name_is_an_attribute_error_that_suggests_the_name():
    with pytest.raises(AttributeError, match=r"^module 'beamish' has no attribute 'Pipelin'$") as raised:
        _ = beamish.Pipelin
    assert (raised.value.name, raised.value.obj) == ("Pipelin", beamish)


def test_an_option_is_read_from_its_spec_before_its_class_was_used():
    program = """
        from beamish.accumulations.base.accumulation import Accumulation
        from beamish.kernels.spec import read_spec
        print(read_spec({'is': 'Sum', 'column': 'x'}, Accumulation))
    """
    assert printed_by(textwrap.dedent(program)) == "Sum(column='x')"


PUBLIC = [
    "beam",
    "checkpoint",
    "explain",
    "joining",
    "ledger",
    "local",
    "pipeline",
    "plot",
    "script",
    "sinks",
    "spark.compile",
    "spark.rows.columns",
    "statement",
    "testing",
    "versioned_table",
    "watching",
]


@pytest.mark.parametrize(("task", "most"), [("packer", 110), ("processor", 116)])
def test_a_worker_imports_only_what_its_stage_runs(task, most, tmp_path):
    (tmp_path / "task").write_bytes(cloudpickle.dumps(tasks()[task]))
    program = f"""
        import pyspark.worker, sys
        before = set(sys.modules)
        from pyspark import cloudpickle
        cloudpickle.loads(open({str(tmp_path / "task")!r}, "rb").read())
        print(*sorted(set(sys.modules) - before))
    """
    loaded = printed_by(textwrap.dedent(program)).split()
    ours = [name for name in loaded if name.partition(".")[0] == "beamish"]
    assert len(ours) <= most
    assert [name for name in ours if name.startswith(tuple(f"beamish.{one}" for one in PUBLIC))] == []
    others = {"sqlglot", "sqlite3", "hypothesis", "matplotlib", "importlib.metadata"}
    assert not (others | ({"pandas"} if task == "packer" else set())) & set(loaded)


@pytest.mark.parametrize("task", ["packer", "processor"])
def test_a_worker_of_our_daemon_has_imported_all_of_beamish(task, tmp_path):
    (tmp_path / "task").write_bytes(cloudpickle.dumps(tasks()[task]))
    program = f"""
        import beamish.spark.daemon, sys
        before = set(sys.modules)
        from pyspark import cloudpickle
        cloudpickle.loads(open({str(tmp_path / "task")!r}, "rb").read())
        print([name for name in set(sys.modules) - before if name.startswith("beamish")])
    """
    assert printed_by(textwrap.dedent(program)) == "[]"


def tasks():
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.string()), ("x", pa.int64())])
    pipeline = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness("10 seconds")).key_by("k")
    pipeline = pipeline.window(bm.FixedWindows("1 minute")).accumulate(n=Count(), s=Sum("x"))
    operator = pipeline.flow.bind({None: schema}, shards=2).operator
    processor = ShardProcessor(operator, FromQuery((True,)), WakePolicy.WHEN_DUE, as_rows=True)
    return {"packer": source_packer(operator, 0, calls=(0,)), "processor": processor}
