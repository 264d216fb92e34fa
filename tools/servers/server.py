"""A server on loopback: one process, with a folder of its own that is removed when this process ends."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path


class UnavailableError(Exception):
    """The machine lacks a program or a package, and it cannot be fetched."""


class StartError(Exception):
    """A server does not start."""


class Server(ABC):
    """A server that can be stopped and started again on the same port, with the same data.

    Attributes:
        name: its name.
        stopped_by: the signal that shuts it down in order.
        folder: data, settings and log.
        port: its port on 127.0.0.1.
        process: its process.
    """

    name: str
    stopped_by = signal.SIGTERM
    process: subprocess.Popen[bytes]

    def __init__(self, parent: Path | None = None) -> None:
        """Create data and settings, and start the server.

        Args:
            parent: of its folder; None: the folder of temporary files.

        Raises:
            UnavailableError: its programs cannot be fetched.
            StartError: it does not start.
        """
        self.folder = Path(tempfile.mkdtemp(prefix=f"beamish-{self.name}-", dir=parent))
        atexit.register(self._remove)
        self.port = free_port()
        self.prepare()
        self.start()

    @abstractmethod
    def prepare(self) -> None:
        """Create data and settings."""

    @abstractmethod
    def launch(self) -> subprocess.Popen[bytes]:
        """Start the process."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Whether the server answers."""

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        self.process = self.launch()
        for _ in range(3000):
            if self.process.poll() is not None:
                raise StartError(f"{self.name} ended at once: {self.log()}")
            if self.is_ready():
                return
            time.sleep(0.1)
        raise StartError(f"{self.name} does not answer after five minutes: {self.log()}")

    def stop(self, sent: signal.Signals | None = None) -> None:
        """Stop the server in order, or by a signal."""
        self.process.send_signal(sent or self.stopped_by)
        self.process.wait(60)

    def log(self) -> str:
        """The end of the log."""
        return (self.folder / "log").read_text()[-1000:]

    def _remove(self) -> None:
        if hasattr(self, "process") and self.process.poll() is None:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def install(package: str) -> str:
    """Install a package of Debian if root runs this; returns the command."""
    command = ["apt-get", "install", "--yes", "--no-install-recommends", package]
    if os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(command, check=False, capture_output=True, env=quiet)
    return f"{' '.join(command)} (as root)"


def free_port() -> int:
    """A free port of 127.0.0.1."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
