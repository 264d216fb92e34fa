"""Runs in place of ``python``: has a process of the server do what it was called for, and ends with it.

    python -IS client.py SOCKET -m MODULE ARGUMENTS

It is Spark's child in that process's stead: when Spark ends it, the server ends the other.
"""

import json
import os
import socket
import sys


def main(address, *arguments):
    request = json.dumps({"arguments": arguments, "environment": dict(os.environ), "folder": os.getcwd()}).encode()  # noqa: PTH109 - pathlib is slow to import
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        socket.send_fds(connection, [len(request).to_bytes(4, "big")], [0, 1, 2])
        connection.sendall(request)
        status = connection.recv(1)  # nothing before the process has ended
    sys.exit(status[0] if status else 1)


main(*sys.argv[1:])
