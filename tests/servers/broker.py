"""Spark's Kafka connector, and the query that test_kafka.py kills."""

import json
import subprocess
import sys
import warnings
from functools import cache

from tests.servers.killing import ROOT
from tools.servers.kafka import FOLDER


@cache
def connector():
    """The confs that have Spark fetch its Kafka connector; none where it cannot be fetched: then there is a stand-in for it."""
    import pyspark

    package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
    told = {"spark.jars.packages": package, "spark.jars.ivy": str(FOLDER / "spark")}
    code = "import json, sys; from tests.servers.lake import session; session(json.loads(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", code, json.dumps(told)], cwd=ROOT, capture_output=True, check=False)
    if done.returncode == 0:
        return told
    warnings.warn(f"{package} cannot be fetched: bm.sinks.kafka writes by tests/servers/producer.py", stacklevel=1)
    return {}


if __name__ == "__main__":
    import beamish as bm
    from tests.servers import query
    from tests.servers.lake import session

    said = json.loads(sys.argv[1])
    sink = bm.sinks.kafka(said["servers"], "sessions")  # before there is a session, which may lack the connector
    spark = session(said["settings"])
    if not said["settings"]:
        from tests.servers.producer import stand_in

        stand_in(spark)
    query.run(said, sink)
