"""Streams of the tests' session have one partition of state, and as many shards as the session has partitions.

A partition costs a state store and Python processes in each batch. Tests about partitions keep the
session's (fixture ``several_partitions``).
"""

from contextlib import contextmanager

SESSION, FEWER = "2", "1"
_PARTITIONS = "spark.sql.shuffle.partitions"
_starting = [FEWER]


def start_with_fewer():
    """Streams that this process starts from now on have one partition of state."""
    from pyspark.sql.streaming import DataStreamWriter

    if not hasattr(DataStreamWriter.start, "starts"):
        DataStreamWriter.start = _starting_with_fewer(DataStreamWriter.start)


def _starting_with_fewer(start):
    def start_query(writer, *arguments, **options):
        conf = writer._spark.conf
        if conf.get(_PARTITIONS) != SESSION:  # chosen by the test
            return start(writer, *arguments, **options)
        conf.set(_PARTITIONS, _starting[-1])
        try:
            return start(writer, *arguments, **options)
        finally:
            conf.set(_PARTITIONS, SESSION)

    start_query.starts = start
    return start_query


@contextmanager
def several_partitions():
    """Streams have the partitions of the session."""
    _starting.append(SESSION)
    try:
        yield
    finally:
        _starting.pop()
