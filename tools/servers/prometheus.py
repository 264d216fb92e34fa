"""Prometheus: Debian's package ``prometheus``, or one on the PATH."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from tools.servers.server import Server, UnavailableError


class Prometheus(Server):
    """See the module docstring; it reads its targets every second."""

    name = "prometheus"

    def prepare(self) -> None:
        if shutil.which("prometheus") is None:
            raise UnavailableError("prometheus is not installed: apt-get install prometheus")
        self._configure([], None)

    def launch(self) -> subprocess.Popen[bytes]:
        program = ["prometheus", f"--config.file={self._config}", f"--storage.tsdb.path={self.folder}/data"]
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [*program, f"--web.listen-address=127.0.0.1:{self.port}"], cwd=self.folder, stdout=log, stderr=log
            )

    def is_ready(self) -> bool:
        try:
            self._get("/-/ready")
        except OSError:
            return False
        return True

    def scrape(self, port: int | None, rules: Path) -> None:
        """Read the metrics of a port on loopback, and evaluate rules."""
        self._configure([f"127.0.0.1:{port}"], rules)
        self.process.send_signal(signal.SIGHUP)
        for _ in range(100):
            if self.rules():
                return
            time.sleep(0.1)

    def query(self, expression: str) -> Any:
        """The answer to an expression."""
        try:
            return json.loads(self._get(f"/api/v1/query?{urllib.parse.urlencode({'query': expression})}"))
        except urllib.error.HTTPError as error:
            return json.loads(error.read())

    def rules(self) -> int:
        """The number of rules that it evaluates."""
        groups = json.loads(self._get("/api/v1/rules"))["data"]["groups"]
        return sum(len(group["rules"]) for group in groups)

    def _get(self, path: str) -> bytes:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            read: bytes = answer.read()
        return read

    def _configure(self, targets: list[str], rules: Path | None) -> None:
        said = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [] if rules is None else [str(rules)],
            "scrape_configs": [{"job_name": "beamish", "static_configs": [{"targets": targets}]}],
        }
        self._config.write_text(json.dumps(said))  # JSON is YAML

    @property
    def _config(self) -> Path:
        return self.folder / "prometheus.yml"
