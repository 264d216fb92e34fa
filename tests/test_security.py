"""The guarantees of SECURITY.md: nothing in a row, a column name or a checkpoint is run; values can be kept out of messages."""

import ast
import contextlib
import importlib.util
import os
import pickle
import random
import sys
import traceback

import pytest

import beamish as bm
from beamish.accumulations import Collect, Count, Reduce, Sum
from beamish.kernels.codec import encode
from beamish.kernels.spec import UnreadableError, read_spec
from beamish.local import Variation, trace
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterWatermark, Trigger
from tests.hostile import HOSTILE, fails
from tests.own.accumulations import Distinct

RUNS = (
    "exec",
    "compile",
    "import",
    "pickle.find_class",
    "marshal.loads",
    "os.system",
    "os.exec",
    "subprocess.Popen",
    "ctypes.dlopen",
)
IMPORTS_BY_NAME = {"beamish/__main__.py", "beamish/exports.py", "beamish/sinks/databases/database.py", "beamish/spark/daemon.py", "beamish/spark/runtime/workers.py", "beamish/testing/laws/check.py", "beamish/watching.py"}  # fmt: skip


class Evil:
    """The function that runs when it is unpickled."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return os.mkdir, (str(self.file),)


@pytest.fixture(scope="module")
def audited():
    """Turned on, a list of what was run, imported or unpickled; a hook stays for the life of the process."""
    state = {"on": False, "seen": []}

    def hook(event, arguments):
        if state["on"] and event.startswith(RUNS):
            state["seen"].append((event, str(arguments)[:200]))

    sys.addaudithook(hook)
    return state


def listened(audited, run):
    """The calls that ran meanwhile."""
    audited["seen"].clear()
    audited["on"] = True
    try:
        run()
    finally:
        audited["on"] = False
    return list(audited["seen"])


def run(names, values):
    """A pipeline whose key, values and lists are these columns, through its stored bytes after each step, and a stage over it."""
    key, value, text = names
    first = (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .key_by(key)
        .window(bm.FixedWindows(10))
        .trigger(AfterWatermark(early=AfterCount(1), late=AfterCount(1)))
        .accumulating_and_retracting()
        .accumulate(sum=Sum(value), all=Collect(text), own=Distinct(text))
    )
    flow = first.then(bm.Pipeline().key_by(key).accumulating().accumulate(n=Count())).flow.completed
    rows = [{"ts": i, key: one, value: i, text: one} for i, one in enumerate(values)]
    script = TestStream().add(rows).advance_watermark_to(30).add(rows).advance_watermark_to_infinity()
    return trace(flow, script.events, Variation(shards=2, packs=2, round_trip=True))


def test_rows_and_column_names_are_never_executed(audited, tmp_path):
    file = tmp_path / "touched"
    hostile = [one.format(file=file) for one in HOSTILE]
    run(["k", "v", "t"], ["a", "b"] * 4)  # what is loaded late is loaded
    assert listened(audited, lambda: run(hostile[:3], hostile)) == []
    assert listened(audited, lambda: run(hostile[3:6], hostile)) == []
    assert not file.exists()
    assert listened(audited, lambda: eval("1 + 1"))  # it can tell


@pytest.mark.dear
def test_stored_values_are_never_unpickled_even_with_a_checksum_that_is_right(audited, tmp_path, root):
    spec = importlib.util.spec_from_file_location("damage", root / "tools" / "damage.py")
    damage = sys.modules["damage"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(damage)
    file, chance = tmp_path / "opened", random.Random(3)
    pickled = pickle.dumps(Evil(file))
    for name in ("fixed windows", "all of time, on the clock", "once per window", "suppressed", "as-of join"):
        case = damage.Case(name, chance)
        right = case.sums
        for number, entries in enumerate(case.stored):
            for entry in chance.sample(sorted(entries), min(3, len(entries))):
                store = case.sealed(number, dict(case.stored[number]))
                store.put(entry, pickled)
                stored = [*case.stored[:number], store.store, *case.stored[number + 1 :]]
                noted = [*case.sums[:number], store.sums, *case.sums[number + 1 :]]

                def rest(case=case, stored=stored, noted=noted):
                    case.sums = noted
                    with contextlib.suppress(
                        bm.StateError, ValueError
                    ):  # refused; whoever can write right checksums can write wrong numbers too
                        assert case.rest(stored) == case.right  # it was not read

                assert listened(audited, rest) == [], (name, entry)
                case.sums = right
    assert not file.exists()
    pickle.loads(pickled)
    assert file.exists()  # it would have been


@pytest.mark.parametrize(
    "identity",
    ["os.system", {"is": "os.system"}, {"is": "beamish.triggers.os.system"}, {"is": "__import__('os')"},
     {"is": "AfterCount", "n": "__import__('os').getpid()"}, {"is": "AfterCount.__init__.__globals__"}],
)  # fmt: skip
def test_an_option_in_a_checkpoint_becomes_one_of_beamishs_or_nothing(audited, identity):
    assert read_spec({"is": "AfterCount", "n": 3}, Trigger) == AfterCount(3)
    found = []

    def read():
        with pytest.raises(UnreadableError):
            found.append(read_spec(identity, Trigger))

    assert listened(audited, read) == []
    assert found == []


@pytest.mark.dear  # reads all files
def test_no_module_unpickles_or_evaluates(root):
    for path in sorted(p for folder in ("beamish", "triggers", "accumulations") for p in (root / folder).rglob("*.py")):
        name = path.relative_to(root).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import | ast.ImportFrom):
                modules = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                unsafe = modules & {
                    "pickle",
                    "cloudpickle",
                    "marshal",
                    "shelve",
                    "dill",
                    "joblib",
                    "subprocess",
                    "runpy",
                    "code",
                }
                assert not unsafe, (name, unsafe)
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "yaml.load"}, (
                    name,
                    called,
                )
                assert not called.endswith("import_module") or name in IMPORTS_BY_NAME, name
                allowed = not any(word.arg == "allow_pickle" for word in node.keywords)
                assert allowed, name


def test_an_accumulator_is_stored_as_data_never_as_code():
    with pytest.raises(TypeError, match="Evil"):
        encode(Evil("x"))


SECRET = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("card")
    .window(bm.FixedWindows(10))
    .accumulate(least=Reduce(fails, "amount"))
)
ROWS = [
    {"ts": 1, "card": "4111-1111", "amount": 17, "name": "Ada"},
    {"ts": 2, "card": "4111-1111", "amount": 18, "name": "Bob"},
]


def test_a_message_has_the_invalid_value_and_its_key_only():
    with pytest.raises(bm.UserFunctionError) as raised:
        SECRET.run(TestStream().add(ROWS))
    for shown in ("4111-1111", "17", "18"):
        assert shown in str(raised.value)
    assert "Ada" not in str(raised.value)


@pytest.mark.parametrize(("said", "hidden"), [("1", True), ("0", False), ("", False)])
def test_values_can_be_hidden_in_messages_and_traces(monkeypatch, said, hidden):
    monkeypatch.setenv("BEAMISH_HIDE_VALUES", said)
    with pytest.raises(bm.UserFunctionError) as raised:
        SECRET.run(TestStream().add(ROWS))
    text = "".join(traceback.format_exception(raised.value))
    assert ("4111-1111" in text) != hidden
    assert ("(hidden)" in str(raised.value)) == hidden
    assert "least" in text or "fn" in text  # what is at fault is still named
    assert "window [1970-01-01T00:00:00+00:00" in text
