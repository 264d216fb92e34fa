"""Files on any file system of Hadoop, such as ``hdfs:``, ``s3a:`` and ``file:``, through the JVM of a classic session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

from beamish.addresses import printable, without_secrets
from beamish.errors import OptionError


@attrs.frozen(eq=False)
class HadoopPath:
    """A file or folder; its text is the absolute URI that Spark uses.

    Attributes:
        hadoop: the JVM's package ``org.apache.hadoop.fs``.
        files: Hadoop's ``FileSystem``.
        path: Hadoop's ``Path``.
    """

    hadoop: Any
    files: Any
    path: Any

    @classmethod
    def of(cls, spark: SparkSession, uri: str) -> HadoopPath:
        """Resolve a URI as Spark does: without a scheme it is on the default file system.

        Raises:
            OptionError: the session has no such file system, or cannot open it.
        """
        session: Any = spark
        hadoop = session._jvm.org.apache.hadoop.fs  # noqa: SLF001
        conf = session._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001
        try:
            path = hadoop.Path(uri)
            files = path.getFileSystem(conf)
            return cls(hadoop, files, files.makeQualified(path))
        except (Py4JJavaError, IllegalArgumentException) as error:
            said = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else error
            why = without_secrets(str(said), uri)
            raise OptionError(f"checkpoint {printable(uri)}: Spark cannot open its file system: {why}") from None

    def __str__(self) -> str:
        return str(self.path.toString())

    def __truediv__(self, name: str) -> HadoopPath:
        return self._at(self.hadoop.Path(self.path, name))

    @property
    def name(self) -> str:
        """The last part of the path."""
        return str(self.path.getName())

    @property
    def is_stored(self) -> bool:
        """Whether Spark reads this file of a checkpoint: it writes each as ``.<name>.<uuid>.tmp`` first, and checksums beside them."""
        return not (self.name.endswith(".crc") or (self.name.startswith(".") and self.name.endswith(".tmp")))

    def with_name(self, name: str) -> HadoopPath:
        """The path of that name in the same folder."""
        return self._at(self.hadoop.Path(self.path.getParent(), name))

    def exists(self) -> bool:
        """Whether there is a file or folder."""
        return bool(self.files.exists(self.path))

    def glob(self, pattern: str) -> list[HadoopPath]:
        """The files and folders below this one that match."""
        return [self._at(one.getPath()) for one in self.files.globStatus((self / pattern).path) or ()]

    def read_text(self) -> str:
        """The content of a file."""
        stream = self.files.open(self.path)
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def write_text(self, text: str) -> None:
        """Write or replace a file."""
        stream = self.files.create(self.path, True)  # noqa: FBT003 - it may overwrite
        try:
            stream.write(text.encode())
        finally:
            stream.close()

    def copy(self, to: HadoopPath) -> None:
        """Copy a file, or all files of a folder, without Spark's checksums of them and what a killed query left half-written.

        Raises:
            OSError: the file system refuses.
        """
        copy = self.hadoop.FileUtil.copy
        for file in self._all_files():
            if not file.is_stored:
                continue
            place = str(file).removeprefix(str(self)).lstrip("/")
            target = to / place if place else to
            if not copy(self.files, file.path, to.files, target.path, False, self.files.getConf()):  # noqa: FBT003
                raise OSError(f"{file} cannot be copied to {target}")

    def rename(self, to: HadoopPath) -> None:
        """Rename it; on an object store, where this copies and deletes every file, not atomic.

        Raises:
            OSError: the file system refuses.
        """
        if not self.files.rename(self.path, to.path):
            raise OSError(f"{self} cannot be renamed to {to}")

    def delete(self) -> None:
        """Delete it, with all it contains, if it exists."""
        self.files.delete(self.path, True)  # noqa: FBT003 - recursive

    def make_folder(self) -> None:
        """Create the folder, and those above it."""
        self.files.mkdirs(self.path)

    def _all_files(self) -> Iterator[HadoopPath]:
        found = self.files.listFiles(self.path, True)  # noqa: FBT003 - recursive
        while found.hasNext():
            yield self._at(found.next().getPath())

    def _at(self, path: Any) -> HadoopPath:
        return attrs.evolve(self, path=path)
