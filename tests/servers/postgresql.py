"""A PostgreSQL server of the tests' own: Debian's package, on loopback, in a folder of its own.

initdb and postgres refuse to run as root; there they run as the user that Debian's package made for them.
"""

from __future__ import annotations

import atexit
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import attrs
import pytest

_INSTALL = ["apt-get", "install", "--yes", "--no-install-recommends", "postgresql"]
_numbers = itertools.count()


@attrs.frozen
class Server:
    """A running server."""

    programs: Path
    port: int

    def uri(self, database="postgres"):
        return f"postgresql://beamish@127.0.0.1:{self.port}/{database}"

    @contextmanager
    def database(self):
        """A new, empty database, by its URI."""
        name = f"test_{os.getpid()}_{next(_numbers)}"
        self.ask(f"CREATE DATABASE {name}")
        try:
            yield self.uri(name)
        finally:
            self.ask(f"DROP DATABASE {name} WITH (FORCE)")

    def ask(self, command, database="postgres"):
        """The output of psql."""
        told = [
            self.programs / "psql",
            self.uri(database),
            "-X",
            "-q",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            "-c",
            command,
        ]
        return subprocess.run(told, check=True, capture_output=True, text=True).stdout


@cache
def server():
    """The server of this process, started when it is first asked for; the test is skipped where it is not installed, and fails where it does not start."""
    programs = _programs()
    if isinstance(programs, str):
        pytest.skip(programs)
    folder = Path(tempfile.mkdtemp(prefix="beamish-postgresql-"))
    user = {}
    if os.geteuid() == 0:
        who = pwd.getpwnam("postgres")
        os.chown(folder, who.pw_uid, who.pw_gid)
        user = {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}
    run = {"cwd": folder, "env": {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}, **user}
    data = folder / "data"
    initdb = [programs / "initdb", "-D", data, "-U", "beamish", "--auth=trust", "--no-sync"]
    subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, **run)
    port = _free_port()
    settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off"}
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [programs / "postgres", "-D", data, "-p", str(port), *options], stdout=log, stderr=log, **run
        )
    atexit.register(_stop, process, folder)
    made = Server(programs, port)
    _wait(made, process, folder)
    return made


def _programs():
    """The folder of the server's programs, or why there is none."""
    if os.geteuid() == 0 and _newest() is None and shutil.which("apt-get"):
        subprocess.run(
            _INSTALL, check=False, capture_output=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        )
    found = _newest()
    return found or f"PostgreSQL 15 or later is not installed: {' '.join(_INSTALL)} (as root)"


def _newest():
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    return next((one for one in reversed(folders) if (one / "initdb").exists() and int(one.parent.name) >= 15), None)


def _free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _wait(made, process, folder):
    for _ in range(300):
        if process.poll() is not None:
            pytest.fail(f"PostgreSQL did not start: {(folder / 'log').read_text()[-500:]}")
        try:
            made.ask("SELECT 1")
        except subprocess.CalledProcessError:
            time.sleep(0.1)
        else:
            return
    pytest.fail("PostgreSQL did not start in 30 seconds")


def _stop(process, folder):
    process.send_signal(signal.SIGINT)  # fast shutdown
    process.wait(30)
    shutil.rmtree(folder, ignore_errors=True)
