"""An object store with S3's API: s3proxy with objects in memory, and what Spark needs for ``s3a:``, from Maven Central into build/s3.

Its store of files (``filesystem-nio2``) answers a request for a folder as for an object, so Hadoop finds a file where Spark makes a folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path

from tools.servers.kafka import fetch
from tools.servers.server import Server, UnavailableError

FOLDER = Path(__file__).parents[2] / "build" / "s3"
VERSION = "3.0.0"
SDK = "2.35.4"
"""The modules that hadoop-aws 3.5.0 needs, 20 MB, in place of the jar of the whole SDK, 600 MB."""
MODULES = ("s3", "s3-transfer-manager", "sts")


class S3(Server):
    """See the module docstring. It accepts any key, and has one bucket."""

    name = "s3"
    bucket = "lake"

    @property
    def endpoint(self) -> str:
        """For ``fs.s3a.endpoint``."""
        return f"http://127.0.0.1:{self.port}"

    def prepare(self) -> None:
        settings = {
            "s3proxy.endpoint": self.endpoint,
            "s3proxy.authorization": "none",
            "s3proxy.ignore-unknown-headers": "true",  # of checksums, with which Hadoop deletes several objects
            "jclouds.provider": "transient",
            "jclouds.identity": "any",
            "jclouds.credential": "any",
        }
        (self.folder / "settings").write_text("\n".join(f"{name}={value}" for name, value in settings.items()))

    def launch(self) -> subprocess.Popen[bytes]:
        java = str(Path(os.environ["JAVA_HOME"]) / "bin" / "java") if "JAVA_HOME" in os.environ else "java"
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [java, "-Xmx1g", "-jar", str(_jar()), "--properties", "settings"],
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )

    def is_ready(self) -> bool:
        """Whether it answers; it then has its bucket."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("PUT", f"/{self.bucket}")
            return connection.getresponse().status == HTTPStatus.OK
        except OSError:
            return False
        finally:
            connection.close()


@cache
def _jar() -> Path:
    jar = FOLDER / f"s3proxy-{VERSION}-jar-with-dependencies.jar"
    if not jar.exists():
        if shutil.which("mvn") is None:
            raise UnavailableError("the program mvn is missing (Debian's package maven)")
        artifact = f"-Dartifact=org.gaul:s3proxy:{VERSION}:jar:jar-with-dependencies"
        copy = ["mvn", "--quiet", "--batch-mode", "dependency:copy", artifact, f"-DoutputDirectory={FOLDER}"]
        done = subprocess.run(copy, capture_output=True, text=True, check=False)
        if done.returncode:
            raise UnavailableError(f"s3proxy cannot be fetched: {done.stdout[-1000:]}")
    return jar


def settings(endpoint: str) -> dict[str, str]:
    """The settings of a Spark session that reaches a server as ``s3a:``; the jars are fetched once.

    Raises:
        UnavailableError: they cannot be.
    """
    return {
        "spark.jars": ",".join(map(str, _connector())),
        "spark.hadoop.fs.s3a.endpoint": endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.access.key": "any",
        "spark.hadoop.fs.s3a.secret.key": "any",
    }


@cache
def _connector() -> list[Path]:
    import pyspark

    (client,) = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    hadoop = client.stem.rpartition("-")[2]
    modules = [f"software.amazon.awssdk:{module}:{SDK}" for module in MODULES]
    folder = FOLDER / hadoop
    fetch(
        ",".join([f"org.apache.hadoop:hadoop-aws:{hadoop}", *modules]),
        folder,
        "org.apache.hadoop_hadoop-aws-*.jar",
        without="software.amazon.awssdk:bundle",
    )
    return sorted((folder / "jars").glob("*.jar"))
