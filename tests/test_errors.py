"""The error of ours in what Spark says of a query that stopped."""

import pytest

import beamish as bm

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


def test_of_a_chain_of_errors_the_last_went_out():
    first = "UserFunctionError: add raised\n\nThe above exception was the direct cause of the following exception:\n"
    error = bm.errors.of(RuntimeError(TEXT.format(f"{first}\nbeamish.errors.UserFunctionError: key 'a': add raised")))
    assert str(error) == "key 'a': add raised"


def test_what_is_none_of_ours_is_none():
    assert bm.errors.of(None) is None
    assert bm.errors.of(RuntimeError("java.lang.OutOfMemoryError")) is None
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


def test_an_error_of_ours_is_itself():
    error = bm.OptionError("no")
    assert bm.errors.of(error) is error
