"""Proxies of servers: connections are cut once PostgreSQL has committed, before the client learns of it."""

import socket
import threading
from abc import ABC, abstractmethod
from contextlib import suppress


class Forwarder(ABC):
    """Forwards connections to a port of 127.0.0.1 until its block ends.

    Attributes:
        port: its own port.
    """

    def __init__(self, to):
        self._to, self._open, self._threads = to, set(), []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._start(self._accept)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in (self._listener, *self._open):
            close(one)
        for thread in self._threads:
            thread.join()

    @abstractmethod
    def forward(self, client, server, state):
        """Send what the client sends, while both live; ``state``: an event of the connection."""

    @abstractmethod
    def answer(self, client, server, state):
        """Send what the server answers, while both live."""

    def _start(self, target, *args):
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def _accept(self):
        with self._listener, suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                self._start(self._connect, client)

    def _connect(self, client):
        # The server may be about to restart.
        with client, suppress(OSError), socket.create_connection(("127.0.0.1", self._to)) as server:
            ends = {client, server}
            self._open |= ends
            state = threading.Event()
            back = self._start(self._until_closed, self.answer, client, server, state)
            self._until_closed(self.forward, client, server, state)
            back.join()
            self._open -= ends

    @staticmethod
    def _until_closed(way, client, server, state):
        with suppress(OSError):
            way(client, server, state)
        close(client)
        close(server)


class Proxy(Forwarder):
    """A proxy of PostgreSQL.

    Attributes:
        cut: the numbers of the COMMITs after whose answer the connection is cut.
        commits, cuts: how many there were.
    """

    def __init__(self, to, cut):
        self.cut, self.commits, self.cuts = cut, 0, 0
        super().__init__(to)

    def forward(self, client, server, state):
        while data := client.recv(65_536):
            if b"COMMIT" in data:
                state.set()
            server.sendall(data)

    def answer(self, client, server, state):
        while data := server.recv(65_536):
            if state.is_set() and b"COMMIT" in data:  # the tag of a completed command
                state.clear()
                self.commits += 1
                if self.commits in self.cut:
                    self.cuts += 1
                    return
            client.sendall(data)


def close(one):
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
