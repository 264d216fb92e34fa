"""``python -m beamish watch``: a session, an address, and the server."""

from __future__ import annotations

import re
import secrets
import socket
import sys
import threading
from collections.abc import Sequence

from beamish.addresses import printable
from beamish.durations import positive
from beamish.errors import OptionError
from beamish.flow import Flow
from beamish.packages import installed

SECOND_US = 1_000_000
_SHORT = re.compile(r"(\d+) ?(ms|s|m|h)")
_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours"}


def watch(
    checkpoints: Sequence[str],
    *,
    port: int,
    every: str,
    host: str = "127.0.0.1",
    flow: Flow | None = None,
    panes: Sequence[str] = (),
    dropped: Sequence[str] = (),
    metrics: Sequence[str] = (),
    remote: str | None = None,
) -> str:
    """Serve the page until it is interrupted.

    Args:
        checkpoints: their folders.
        port: 0: any free one.
        every: how often the logs are read: a duration such as ``10s`` or ``1 minute``.
        host: the address; if it is not loopback, a token is needed.
        flow: the pipeline's; None: it is read from the checkpoint.
        panes, dropped, metrics: of each checkpoint, in their order.
        remote: a Spark Connect server; None: a session in this process.

    Raises:
        OptionError: a package is missing, the address cannot be bound, or an option is invalid.
        SparkSetupError: no session.
    """
    for package in ("starlette", "uvicorn"):
        if not installed(package):
            raise OptionError(f"watch: the package {package} is not installed: pip install 'beamish[watch]'")
    short = _SHORT.fullmatch(every)
    seconds = positive("--every", f"{short[1]} {_UNITS[short[2]]}" if short else every).us / SECOND_US
    if seconds < 1:
        raise OptionError(f"--every {every}: must be at least 1 second")
    for option, given in (("--panes", panes), ("--dropped", dropped), ("--metrics", metrics)):
        if len(given) > len(checkpoints):
            raise OptionError(
                f"{option} {given[-1]}: there are more of them than checkpoints; give one for each, in their order"
            )
    from beamish.dashboard.guard import is_loopback
    from beamish.dashboard.server import application
    from beamish.dashboard.source import SparkSource
    from beamish.dashboard.watched import Watched
    from beamish.spark.runtime.session import reading_session

    listening = _listening(host, port)
    with listening:
        spark = reading_session(remote)
        watched = [
            Watched(
                SparkSource(spark, folder, flow, *(_at(given, place) for given in (panes, dropped, metrics))), seconds
            )
            for place, folder in enumerate(checkpoints)
        ]
        threading.Thread(
            target=lambda: [one.view() for one in watched], daemon=True
        ).start()  # while a browser is opened
        token = None if is_loopback(host) else secrets.token_urlsafe(32)
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listening.getsockname()[1]}/" + ("" if token is None else f"?token={token}")
        print(f"watching {', '.join(one.source.name for one in watched)} at {address}", flush=True)  # noqa: T201 - it is a program
        _serve(application(watched, token), listening)
    return "stopped watching"


def _at(given: Sequence[str], place: int) -> str | None:
    return given[place] if place < len(given) else None


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens (OptionError: the address cannot be bound)."""
    if not 0 <= port < 2**16:
        raise OptionError(f"--port {port}: must be at most 65535; 0: any free one")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise OptionError(
            f"watch --host {printable(host)} --port {port}: {error}; give another --port, or 0 for a free one"
        ) from None


def _serve(app: object, listening: socket.socket) -> None:
    import uvicorn

    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, lifespan="off")  # type: ignore[arg-type]
    try:
        uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:
        print(file=sys.stderr)  # noqa: T201 - after ^C
