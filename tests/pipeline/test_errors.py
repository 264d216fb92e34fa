"""The error of ours in what Spark says of a query that stopped."""

import inspect
import re
import traceback

import attrs
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Accumulation, Fold
from beamish.tables.entries import naming_entry
from beamish.testing import TestStream
from beamish.triggers import Always, Trigger

TEXT = """[STREAM_FAILED] Query [id = 0cd6] terminated with exception: [PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "worker.py", line 4327, in invoke_udf
    raise StateError(
beamish.errors.{0}
 SQLSTATE: 38000 SQLSTATE: XXKST
=== Streaming Query ===
Identifier: [id = 0cd63449]
"""


@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        ("StateError: the checkpoint has 2 shards: keep it", bm.StateError, "the checkpoint has 2 shards: keep it"),
        (
            "UserFunctionError: f raised ValueError: one\ntwo: 2",
            bm.UserFunctionError,
            "f raised ValueError: one\ntwo: 2",
        ),
        ("SqlError: no such column", bm.SqlError, "no such column"),
    ],
)
def test_the_error_of_a_worker_is_found_with_its_class_and_its_message_alone(raised, kind, message):
    spark_s = RuntimeError(TEXT.format(raised))
    error = bm.errors.of(spark_s)
    assert (type(error), str(error)) == (kind, message)
    assert error.__cause__ is spark_s


def test_the_last_error_of_a_chain_is_found():
    first = "UserFunctionError: add raised\n\nThe above exception was the direct cause of the following exception:\n\n"
    then = "Traceback (most recent call last):\n  File ...\nbeamish.errors.UserFunctionError: key 'a': add raised"
    error = bm.errors.of(RuntimeError(TEXT.format(first + then)))
    assert str(error) == "key 'a': add raised"


def test_an_error_in_a_worker_is_found_in_one_of_sparks_in_the_driver():
    driver = 'Traceback (most recent call last):\n  File "clientserver.py"\npyspark.errors.exceptions.captured.PythonException: from the worker:\n'
    worker = 'Traceback (most recent call last):\n  File "worker.py"\nbeamish.errors.UserFunctionError: add raised\n\tat org.apache.spark'
    assert str(bm.errors.of(RuntimeError(driver + worker))) == "add raised"
    assert bm.errors.of(RuntimeError((driver + worker).replace("pyspark.errors", "mine"))) is None


def test_errors_of_other_libraries_give_none():
    assert bm.errors.of(None) is None
    assert bm.errors.of(RuntimeError("java.lang.StackOverflowError")) is None
    assert bm.errors.of(RuntimeError("\nbeamish.errors.re: no class")) is None


@pytest.mark.parametrize(
    "words",
    [
        "Caused by: java.io.FileNotFoundException: File file:/c/state/1/12/3.changelog does not exist\n\tat org",
        "[CANNOT_LOAD_STATE_STORE.CANNOT_READ_STREAMING_STATE_FILE] of file:/c/state/1/12/3.changelog does not exist.",
    ],
)
def test_a_file_of_the_state_that_is_missing_is_named(words):
    spark_s = RuntimeError(f"[STREAM_FAILED] Query terminated\n{words}")
    error = bm.errors.of(spark_s)
    assert isinstance(error, bm.StateError)
    assert str(error).startswith(
        "the state of partition 12 of operator 1 lacks the file file:/c/state/1/12/3.changelog: "
    )
    assert error.__cause__ is spark_s
    assert bm.errors.of(RuntimeError("FileNotFoundException: File file:/rows/state/5.json does not exist")) is None


SCHEMA = "File file:/a/scores/state/0/_stateSchema/default/0_7b87 does not exist"
LOAD = "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state.  SQLSTATE: 58030"


WORKER = 'PythonException: An exception was thrown from the Python worker:\nTraceback (most recent call last):\n  File "w.py"\n'
OUT_OF_MEMORY = [
    (f"{WORKER}MemoryError\n SQLSTATE: 39000", "MemoryError"),
    *[
        (f"{WORKER}{line}\n SQLSTATE: 39000", line)
        for line in (
            "pyarrow.lib.ArrowMemoryError: malloc of size 4194304 failed",
            "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 3.05 MiB for an array with shape (400000,)",
            "MemoryError: OSError: LZ4 decompress failed: ERROR_allocation_failed",
            "ImportError: libarrow_compute.so.2600: failed to map segment from shared object",
            "RuntimeError: can't start new thread",
            "OSError: [Errno 12] Cannot allocate memory",
        )
    ],
    (
        f"{WORKER}ImportError: \n\nOriginal error was: libgfortran.so.5: failed to map segment from shared object\n",
        "Original error was: libgfortran.so.5: failed to map segment from shared object",
    ),
]
"""Errors of Spark's workers under spark.executor.pyspark.memory of 100 to 700 MB, and their decisive line."""
KILLED = [
    (
        "SparkException: Python worker exited unexpectedly (crashed). Consider setting 'spark.sql.execution.pyspark.udf.faul...",
        "Python worker exited unexpectedly (crashed)",
    ),
    (
        "ExecutorLostFailure: The executor with id 1 exited with exit code 137(SIGKILL, possible container OOM)",
        "exit code 137",
    ),
    ("Container killed by YARN for exceeding physical memory limits. 5 GB used", "exceeding physical memory limits"),
]


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        (SCHEMA, bm.StateError, "file:/a/scores lacks the state schema, so the checkpoint was moved or copied"),
        (
            f"{LOAD}\nCaused by: {LOAD}\nCaused by: java.io.EOFException: Unexpected end of ZLIB input stream\n\tat",
            bm.StateError,
            "missing or damaged (java.io.EOFException: Unexpected end of ZLIB input stream): restore the folder",
        ),
        (
            f"{LOAD}\nCaused by: java.io.FileNotFoundException: a.sst",
            bm.StateError,
            "FileNotFoundException: a.sst): res",
        ),
        ("[STDS_FAILED_TO_READ_OPERATOR_METADATA] Failed", bm.StateError, "Spark cannot load the state of the checkp"),
        ("calling o17.load.\n: java.io.EOFException\n\tat", bm.StateError, "damaged (java.io.EOFException): restore"),
        (
            "[STREAM_FAILED] Failed to read log file file:/a/offsets/2. Incomplete log file SQLSTATE: XXKST",
            bm.StateError,
            "damaged (Failed to read log file file:/a/offsets/2. Incomplete log file): restore the folder",
        ),
        (
            "[STREAMING_CHECKPOINT_MISSING_METADATA_FILE] Checkpoint location file:/a/scores is in an inconsistent state: the",
            bm.StateError,
            "file:/a/scores has offsets or commits, and no metadata: a bm.migrate that was interrupted left it (delete it",
        ),
        (
            "[STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY] Cannot restart streaming query with stateful operators because the",
            bm.StateError,
            "has offsets and no state: a bm.migrate that was interrupted left it (delete it, and migrate again), or",
        ),
        (
            "[STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA] Streaming stateful operator name does not match with",
            bm.StateError,
            "other operators or sources than the query: stages or inputs were added or removed, or others run together; nothing",
        ),
        (
            "assertion failed: There are [5] sources in the checkpoint offsets and now there are [3] sources requested by the query.",
            bm.StateError,
            "apply(df, checkpoint=...) keeps what runs together in the checkpoint, apply(df, fuse=False) runs each stage apart",
        ),
        ("MismatchedInputException: No\n\tat StreamMetadata$.read", bm.StateError, "(MismatchedInputException): res"),
        ("ModuleNotFoundError: No module named 'beamish'", bm.SparkSetupError, "no module 'beamish': install or ship"),
        (
            "org.apache.spark.SparkException: Python worker failed to connect back.\nCaused by: java.net.SocketTimeoutException",
            bm.SparkSetupError,
            "did not answer within 10 seconds, which Spark fixes: the machine is overloaded",
        ),
        (
            "SocketTimeoutException: Timed out while waiting for the Python worker to connect back",
            bm.SparkSetupError,
            "restart the query from its checkpoint, nothing was lost. Leave the query a free core, and set spark.python.daemon.module",
        ),
        (
            "TypeError: SqlSink.__call__() missing 1 required positional argument: 'batch_id'",
            bm.SinkError,
            "SqlSink: foreach gives it rows, and a sink takes batches: writeStream.foreachBatch(sink)",
        ),
        (
            "[DUPLICATED_METRICS_NAME] The metric name is not unique: `beamish`. The same name cannot be used for",
            bm.OptionError,
            "bm.observe: the query has two observations of one name: observe its panes once",
        ),
        (
            "[DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION] Cannot create table ('`spark_catalog`.`default`.`scores`').",
            bm.SinkError,
            "this session's catalog does not know the table",
        ),
        (
            "io.delta.exceptions.ConcurrentDeleteReadException: [DELTA_CONCURRENT_DELETE_READ.WITHOUT_HINT] Transaction conflict",
            bm.SinkError,
            "committed to the table while the batch was merged (DELTA_CONCURRENT_DELETE_READ); nothing of the batch was written: restart",
        ),
        (
            "org.apache.iceberg.exceptions.ValidationException: Cannot commit, missing data files: [a]",
            bm.SinkError,
            "committed to the table while the batch was merged (Cannot commit, missing data files); nothing",
        ),
        *[(text, bm.SparkSetupError, f"ran out of memory ({line}): each core") for text, line in OUT_OF_MEMORY],
        (
            "SparkException: Job aborted due to stage failure\nCaused by: java.lang.OutOfMemoryError: Java heap space\n\tat java.util",
            bm.SparkSetupError,
            "a JVM of Spark ran out of memory (OutOfMemoryError: Java heap space): raise spark.executor.memory",
        ),
        (
            "org.apache.spark.memory.SparkOutOfMemoryError: [UNABLE_TO_ACQUIRE_MEMORY] Unable to acquire 65536 bytes",
            bm.SparkSetupError,
            "a JVM of Spark ran out of memory (OutOfMemoryError: [UNABLE_TO_ACQUIRE_MEMORY] Unable to acquire",
        ),
        *[
            (text, bm.SparkSetupError, f"was killed, or crashed ({part}), most often because memory ran out")
            for text, part in KILLED
        ],
        ('IOException: Cannot run program "./e/python": error=2', bm.SparkSetupError, "cannot run './e/python': set"),
    ],
)
def test_known_spark_errors_become_a_sentence(text, kind, words):
    sparks = RuntimeError(text)
    error = bm.errors.of(sparks)
    assert type(error) is kind
    assert words in str(error)
    assert error.__cause__ is sparks


def test_a_state_that_is_not_damaged_is_not_reported_as_such():
    assert bm.errors.of(RuntimeError(f"{LOAD}\nCaused by: java.lang.InterruptedException")) is None


def test_a_beamish_error_is_returned_unchanged():
    error = bm.OptionError("no")
    assert bm.errors.of(error) is error


class RaisedError(Exception):
    """An error of a user's own, of any text."""


class UnreadableError(Exception):
    """One whose text cannot be had."""

    def __str__(self):
        raise ZeroDivisionError


class Mute:
    """A value whose repr cannot be had."""

    def __repr__(self):
        raise ZeroDivisionError


def raising(error):
    def function(*_):
        raise error

    return function


@attrs.frozen
class Broken(Trigger):
    """A user's trigger that raises."""

    error: Exception = attrs.field(eq=False, repr=False)

    def should_fire(self, state, context):
        raise self.error


@attrs.frozen
class BrokenWindows(bm.WindowOption):
    """A user's window option that raises."""

    error: Exception = attrs.field(eq=False, repr=False)

    def assign(self, timestamp_us):
        raise self.error


@attrs.frozen
class BrokenMerge(BrokenWindows):
    """One that raises as windows merge."""

    merging = True

    def assign(self, timestamp_us):
        yield timestamp_us, timestamp_us + 1

    def merge(self, windows):
        raise self.error


FIRST = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .window(bm.FixedWindows(10))
    .trigger(Always())
    .accumulating()
)
SCRIPT = bm.testing.TestStream().add([{"ts": 1, "x": 1}])


def pipelines(error):
    """One for each function of a user's own that may raise."""
    n = Fold(0, lambda n, _: n + 1)
    return {
        "accumulation": FIRST.accumulate(n=Fold(0, raising(error))),
        "trigger": FIRST.accumulate(n=n).trigger(Broken(error), allow_data_loss=True),
        "windows": FIRST.accumulate(n=n).window(BrokenWindows(error)),
        "merging windows": FIRST.accumulate(n=Fold(0, raising(error), merge=raising(error))).window(BrokenMerge(error)),
    }


def raised_by(pipeline):
    with pytest.raises(bm.UserFunctionError) as raised:
        pipeline.run(SCRIPT)
    return raised.value


def spark_s(error):
    """Spark's message about a query that an error in a worker stopped."""
    trace = "".join(traceback.format_exception(error))
    return RuntimeError(
        f"[STREAM_FAILED] ...: An exception was thrown from the Python worker: {trace} SQLSTATE: 38000 SQLSTATE: XXKST"
    )


LINES = st.sampled_from(
    [
        "",
        "x",
        "beamish.errors.StateError: made up",
        "Traceback (most recent call last):",
        '  File "x.py", line 1, in f',
        "The above exception was the direct cause of the following exception:",
        "During handling of the above exception, another exception occurred:",
        "\tat org.apache.Spark",
        " SQLSTATE: 38000",
        "=== Streaming Query ===",
    ]
)
CHAIN = "x\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File ...\n"


@given(st.lists(LINES, min_size=1, max_size=6).map("\n".join), st.sampled_from(sorted(pipelines(RaisedError()))))
@example("x\nbeamish.errors.StateError: made up", "accumulation")
@example(f"{CHAIN}beamish.errors.StateError: made up", "trigger")
def test_the_text_of_a_user_error_is_never_mistaken_for_a_beamish_error(text, which):
    error = raised_by(pipelines(RaisedError(text))[which])
    found = bm.errors.of(spark_s(error))
    assert (type(found), str(found)) == (bm.UserFunctionError, str(error).rstrip())


@given(st.lists(LINES.filter(lambda line: "above exception" not in line), min_size=1, max_size=6).map("\n".join))
@example("x\nbeamish.errors.StateError: made up")
def test_a_foreign_error_with_any_text_gives_none(text):
    with pytest.raises(RaisedError) as raised:
        raising(RaisedError(text))()
    assert bm.errors.of(spark_s(raised.value)) is None


@pytest.mark.parametrize("hidden", ["", "1"])
@pytest.mark.parametrize("which", pipelines(RaisedError()))
def test_an_error_whose_str_raises_is_named(which, hidden, monkeypatch):
    monkeypatch.setenv(bm.errors.HIDE_VALUES, hidden)
    words = "UnreadableError: (hidden)" if hidden else "UnreadableError: (its str() raised ZeroDivisionError)"
    error = raised_by(pipelines(UnreadableError())[which])
    assert f"raised {words}" in str(error)
    assert str(bm.errors.of(spark_s(error))) == str(error)


def test_a_row_that_is_dropped_for_such_an_error_names_it():
    (row,) = FIRST.accumulate(n=Fold(0, raising(UnreadableError()))).on_error("drop").run(SCRIPT)
    assert "raised UnreadableError: (its str() raised ZeroDivisionError)" in row.message


def test_of_returns_none_if_str_raises():
    assert bm.errors.of(UnreadableError()) is None


class Keeps(Accumulation):
    """An accumulation whose accumulators cannot be kept, nor shown."""

    column, result_type = "x", "bigint"

    def create(self):
        return None

    def add(self, accumulator, value):
        return Mute()

    def merge(self, a, b):
        return a

    def extract(self, accumulator):
        return 0


def test_a_value_that_cannot_be_shown_is_named_by_its_class():
    error = raised_by(FIRST.accumulate(n=Keeps()))
    assert "tests.pipeline.test_errors.Mute (a Mute), which cannot be stored in the checkpoint" in str(error)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: bm.Pipeline(pa.table({})),
            "Pipeline(Table): Pipeline() takes no argument, and transform takes a pipeline",
        ),
        (lambda: bm.progress(pa.table({})), "progress(Table): must be a started query: query = df.transform(pipeline)"),
    ],
)
def test_a_value_in_the_place_of_another_is_refused_at_the_call(call, words):
    with pytest.raises(bm.OptionError, match="^" + re.escape(words)):
        call()


@pytest.mark.parametrize(
    "sink", [bm.sinks.sql("sqlite:///a.db", "panes"), bm.sinks.merge("panes"), bm.sinks.kafka("a:1", "panes")]
)
def test_a_sink_that_foreach_calls_with_a_row_is_named(sink):
    with pytest.raises(TypeError) as raised:
        sink({"k": 1})
    assert "foreachBatch(sink)" in str(bm.errors.of(raised.value))


@attrs.frozen
class Heavy(Accumulation):
    """Memory runs out at a row."""

    column: str
    result_type = "bigint"

    def create(self):
        return 0

    def add(self, accumulator, value):
        if value:
            raise MemoryError
        return accumulator

    def merge(self, a, b):
        return a + b

    def extract(self, accumulator):
        return accumulator


def test_missing_memory_is_not_the_fault_of_a_row_or_a_function():
    windows = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).window(bm.FixedWindows(10))
    for pipeline in (windows, windows.on_error("drop").with_dropped()):
        with pytest.raises(MemoryError):
            pipeline.accumulate(n=Heavy("x")).run(TestStream().add([{"ts": 1, "x": 1}]))


def test_missing_memory_is_not_damage():
    with pytest.raises(MemoryError, match="OSError: LZ4 decompress failed"), naming_entry("s1"):
        raise OSError("LZ4 decompress failed: ERROR_allocation_failed")
    with pytest.raises(bm.StateError, match="entry 's1' is not what was written"), naming_entry("s1"):
        raise OSError("LZ4 decompress failed: ERROR_frameHeader_incomplete")


def test_no_input_of_a_merge_may_have_the_name_of_an_argument_of_apply():
    arguments = [name for name in inspect.signature(bm.Pipeline.apply).parameters if name not in ("self", "inputs")]
    assert {"df", "shards", "fuse", "shard_by", "checkpoint"} <= set(arguments)
    source = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k")
    for name in arguments:
        with pytest.raises(bm.PipelineError, match="apply has an argument of this name"):
            bm.merge(**{name: source, "other": source})
