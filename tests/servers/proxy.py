"""A proxy of PostgreSQL that cuts connections once the server has committed, before the client learns of it."""

import socket
import threading
from contextlib import suppress


class Proxy:
    """Forwards connections to a port of 127.0.0.1.

    Attributes:
        port: its own port.
        cut: the numbers of the COMMITs after whose answer the connection is cut.
        commits, cuts: how many there were.
    """

    def __init__(self, to, cut):
        self._to, self.cut, self.commits, self.cuts = to, cut, 0, 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            client, _ = self._listener.accept()
            try:
                server = socket.create_connection(("127.0.0.1", self._to))
            except OSError:  # the server restarts
                client.close()
                continue
            committing = threading.Event()
            for pump in (self._forward, self._answer):
                threading.Thread(target=pump, args=(client, server, committing), daemon=True).start()

    def _forward(self, client, server, committing):
        with suppress(OSError):
            while data := client.recv(65_536):
                if b"COMMIT" in data:
                    committing.set()
                server.sendall(data)
        close(server)

    def _answer(self, client, server, committing):
        with suppress(OSError):
            while data := server.recv(65_536):
                if committing.is_set() and b"COMMIT" in data:  # the tag of a completed command
                    committing.clear()
                    self.commits += 1
                    if self.commits in self.cut:
                        self.cuts += 1
                        break
                client.sendall(data)
        close(client)
        close(server)


def close(one):
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
