"""A proxy of an object store that can answer an error in its place, or late."""

import time

from tests.servers.proxy import Forwarder


class FailingStore(Forwarder):
    """Forwards connections to a port of 127.0.0.1 until its block ends.

    Attributes:
        endpoint: its own address.
        answers: the HTTP status of all requests; None: the store's.
        waits: seconds before what a client sends is forwarded.
        failed, late: how many requests, or parts of them, were answered an error, or were late.
    """

    def __init__(self, to):
        self.answers, self.waits, self.failed, self.late = None, 0, 0, 0
        super().__init__(to)
        self.endpoint = f"http://127.0.0.1:{self.port}"

    def forward(self, client, server, state):
        while data := client.recv(65_536):
            if self.answers:
                self.failed += 1
                client.sendall(b"HTTP/1.1 %d no\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % self.answers)
                return
            if self.waits:
                self.late += 1
                time.sleep(self.waits)
            server.sendall(data)

    def answer(self, client, server, state):
        while data := server.recv(65_536):
            client.sendall(data)
