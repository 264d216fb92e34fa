"""A PostgreSQL server: Debian's package, which root installs where it is missing.

initdb and postgres refuse to run as root; there they run as the user that Debian's package made for them.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from tools.servers.server import Server, UnavailableError, install

_SETTINGS = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off"}
_numbers = itertools.count()


class PostgreSql(Server):
    """See the module docstring."""

    name = "postgresql"
    stopped_by = signal.SIGINT  # fast shutdown

    def uri(self, database: str = "postgres") -> str:
        """The URI of a database."""
        return f"postgresql://beamish@127.0.0.1:{self.port}/{database}"

    @contextmanager
    def database(self) -> Iterator[str]:
        """A new, empty database, by its URI."""
        name = f"test_{os.getpid()}_{next(_numbers)}"
        self.ask(f"CREATE DATABASE {name}")
        try:
            yield self.uri(name)
        finally:
            self.ask(f"DROP DATABASE {name} WITH (FORCE)")

    def ask(self, command: str, database: str = "postgres") -> str:
        """The output of psql."""
        options = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", command]
        told = [str(self.programs / "psql"), self.uri(database), *options]
        return subprocess.run(told, check=True, capture_output=True, text=True).stdout

    @cached_property
    def programs(self) -> Path:
        """The folder of the server's programs."""
        if (found := _newest()) is None:
            command = install("postgresql")
            if (found := _newest()) is None:
                raise UnavailableError(f"PostgreSQL 15 or later is not installed: {command}")
        return found

    def prepare(self) -> None:
        initdb = [str(self.programs / "initdb"), "-D", "data", "-U", "beamish", "--auth=trust", "--no-sync"]
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
        subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, **self._run)

    def launch(self) -> subprocess.Popen[bytes]:
        options = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
        program = [str(self.programs / "postgres"), "-D", "data", "-p", str(self.port), *options]
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(program, stdout=log, stderr=log, **self._run)

    def is_ready(self) -> bool:
        try:
            self.ask("SELECT 1")
        except subprocess.CalledProcessError:
            return False
        return True

    @property
    def _run(self) -> dict[str, Any]:
        run = {"cwd": self.folder, "env": {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}}
        if os.geteuid():
            return run
        who = pwd.getpwnam("postgres")
        return {**run, "user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}


def _newest() -> Path | None:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    return next((one for one in reversed(folders) if (one / "initdb").exists() and int(one.parent.name) >= 15), None)
