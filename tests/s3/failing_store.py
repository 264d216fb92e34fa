"""A proxy of an object store that can answer an error in its place, or late."""

import socket
import threading
import time
from contextlib import suppress

from tests.servers.proxy import close


class FailingStore:
    """Forwards connections to a port of 127.0.0.1.

    Attributes:
        endpoint: its own address.
        answers: the HTTP status of all requests; None: the store's.
        waits: seconds before what a client sends is forwarded.
        failed, late: how many requests, or parts of them, were answered an error, or were late.
    """

    def __init__(self, to):
        self._to, self.answers, self.waits, self.failed, self.late = to, None, 0, 0, 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            client, _ = self._listener.accept()
            server = socket.create_connection(("127.0.0.1", self._to))
            threading.Thread(target=self._forward, args=(client, server), daemon=True).start()
            threading.Thread(target=self._return, args=(client, server), daemon=True).start()

    def _forward(self, client, server):
        with suppress(OSError):
            while data := client.recv(65_536):
                if self.answers:
                    self.failed += 1
                    client.sendall(b"HTTP/1.1 %d no\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % self.answers)
                    break
                if self.waits:
                    self.late += 1
                    time.sleep(self.waits)
                server.sendall(data)
        close(client)
        close(server)

    @staticmethod
    def _return(client, server):
        with suppress(OSError):
            while data := server.recv(65_536):
                client.sendall(data)
        close(client)
        close(server)
