"""Hosts on one machine: network namespaces with addresses of their own, joined by a switch; else addresses of the loopback."""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

_numbers = itertools.count()


class Network:
    """Hosts that reach each other and nothing else.

    Attributes:
        addresses: each host's address, by its name.
        why_flat: why the machine has no network namespaces; None if each host is one.
    """

    def __init__(self, hosts: Sequence[str]) -> None:
        """Create the namespaces; those of a process that did not remove its own are removed first."""
        self._name = f"beamish-{os.getpid()}-{next(_numbers)}"
        self._numbers = {host: number for number, host in enumerate(hosts, start=1)}
        self.why_flat = _why_flat()
        subnet = "127.0.46" if self.why_flat else "198.18.46"  # the second is for benchmarks, and routed nowhere
        self.addresses = {host: f"{subnet}.{number}" for host, number in self._numbers.items()}
        if not self.why_flat:
            _remove_orphans()
            atexit.register(self.remove)
            self._create()

    def _create(self) -> None:
        switch = f"{self._name}-switch"
        _ip("netns", "add", switch)
        _ip("-n", switch, "link", "add", "switch", "type", "bridge")
        _ip("-n", switch, "link", "set", "switch", "up")
        for host, address in self.addresses.items():
            own, port = self._namespace(host), self._port(host)
            _ip("netns", "add", own)
            _ip("-n", switch, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", own)
            _ip("-n", switch, "link", "set", port, "master", "switch", "up")
            _ip("-n", own, "address", "add", f"{address}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                _ip("-n", own, "link", "set", device, "up")

    def on(self, host: str, command: Sequence[str]) -> list[str]:
        """The command, run on a host: its process is that of the command."""
        return list(command) if self.why_flat else ["ip", "netns", "exec", self._namespace(host), *command]

    def cut(self, host: str) -> None:
        """Pull a host's cable."""
        _ip("-n", f"{self._name}-switch", "link", "set", self._port(host), "down")

    def mend(self, host: str) -> None:
        """Plug it in again."""
        _ip("-n", f"{self._name}-switch", "link", "set", self._port(host), "up")

    def remove(self) -> None:
        """Remove the namespaces."""
        if not self.why_flat:
            for name in (f"{self._name}-switch", *map(self._namespace, self._numbers)):
                subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)  # noqa: S607

    def _namespace(self, host: str) -> str:
        return f"{self._name}-{host}"

    def _port(self, host: str) -> str:
        return f"port{self._numbers[host]}"


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)  # noqa: S607


def _why_flat() -> str | None:
    if shutil.which("ip") is None:
        return "the program ip is missing (Debian's package iproute2)"
    name = f"beamish-{os.getpid()}-try"
    tried = subprocess.run(["ip", "netns", "add", name], check=False, capture_output=True, text=True)  # noqa: S607
    if tried.returncode:
        return f"ip netns add: {tried.stderr.strip()}"
    _ip("netns", "delete", name)
    return None


def _remove_orphans() -> None:
    listed = subprocess.run(["ip", "netns", "list"], check=True, capture_output=True, text=True).stdout  # noqa: S607
    for line in listed.splitlines():
        prefix, _, rest = line.partition("-")
        number = rest.partition("-")[0]
        if prefix == "beamish" and number.isdigit() and not Path(f"/proc/{number}").exists():
            subprocess.run(["ip", "netns", "delete", line.split()[0]], check=False, capture_output=True)  # noqa: S607
