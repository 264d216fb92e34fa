"""A Python that has imported already what Spark's workers import; it is forked whenever Spark starts one.

Spark starts a Python process for each source and each stateful stage of each query, and more for the workers. A second of
computing goes into the imports of each: much more than into what most queries of the tests compute. ``warm_python`` gives
an executable that Spark can be told to use as Python. What runs in the process is what would run in a new one: the module of
``-m``, in the environment, the folder and on the files that Spark gave.

    python server.py SOCKET

It ends when its standard input does.
"""

import contextlib
import gc
import importlib
import json
import os
import runpy
import selectors
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path

IMPORTED = [
    "pandas",
    "pyarrow.compute",
    "pyspark.worker",
    "pyspark.sql.worker.plan_data_source_read",
    "beamish.spark.operator.processor",
    "beamish.spark.operator.heartbeats",
    "beamish.spark.scripted",
]
RUN = [
    "pyspark.daemon",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.streaming.transform_with_state_driver_worker",
]
"""Modules that Spark runs: imported for their own imports, and reloaded where they run."""


def can_serve():
    """Whether processes can be forked and files be handed to them: on Linux; elsewhere a fork is not safe."""
    return sys.platform == "linux"


@contextlib.contextmanager
def warm_python(folder, root):
    """The executable that asks a server for its processes; the server ends with it."""
    address, python = folder / "socket", folder / "python"
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(root)}  # the seed is the one that Spark gives
    command = [sys.executable, __file__, str(address)]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        if server.stdout.readline() != b"ready\n":
            raise RuntimeError("the server of warm Python processes did not start")
        words = [sys.executable, "-IS", str(Path(__file__).with_name("client.py")), str(address)]
        python.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        python.chmod(0o755)
        yield python


def serve(address):
    """Fork for every client; gives, in the forked process, what is to be run there."""
    reader, writer = socket.socketpair()
    writer.setblocking(False)  # noqa: FBT003
    signal.set_wakeup_fd(writer.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    print("ready", flush=True)
    running = {}  # the process of each client
    with selectors.DefaultSelector() as selector:
        for file in (sys.stdin, reader, listener):
            selector.register(file, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is sys.stdin:
                    sys.exit()
                elif key.fileobj is reader:
                    reader.recv(4096)
                elif key.fileobj is listener:
                    client, _ = listener.accept()
                    request, files = read(client)
                    process = os.fork()
                    if process == 0:
                        signal.set_wakeup_fd(-1)
                        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                        for file in (reader, writer, listener, client, *running):
                            file.close()
                        return request, files
                    for file in files:
                        os.close(file)
                    running[client] = process
                    selector.register(client, selectors.EVENT_READ)
                else:  # the client was ended
                    selector.unregister(key.fileobj)
                    os.kill(running[key.fileobj], signal.SIGTERM)
            for client, process in list(running.items()):
                ended, status = os.waitpid(process, os.WNOHANG)
                if ended:
                    del running[client]
                    answer(client, selector, os.waitstatus_to_exitcode(status))


def read(client):
    """The request of a client, and its standard files."""
    head, files, _, _ = socket.recv_fds(client, 4, 3)
    with client.makefile("rb") as stream:
        return json.loads(stream.read(int.from_bytes(head, "big"))), files


def answer(client, selector, code):
    """Tell a client, if it is still there, how its process ended."""
    with client:
        if client in selector.get_map():
            selector.unregister(client)
            with contextlib.suppress(OSError):
                client.send(bytes([code % 256]))


def run(arguments, environment, folder, files):
    """Do the same as ``python ARGUMENTS`` in a separate process."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    # PySpark is imported already, and not from the archive that Spark gives: recompiled there in each process
    paths = [
        path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if not path.endswith((".zip", ".jar"))
    ]
    sys.path[:0] = [path for path in [folder, *paths] if path not in sys.path]
    option, what, *rest = arguments
    if option == "-c":  # by which Spark asks for the version
        sys.argv = [option, *rest]
        exec(what, {"__name__": "__main__"})
    elif option == "-m":
        sys.argv = [what, *rest]
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        raise ValueError(f"{arguments}: Spark is to start a module, or to say a line")


def main(address):
    for module in [*IMPORTED, *RUN]:
        importlib.import_module(module)
    for module in RUN:
        del sys.modules[module]
    gc.freeze()
    request, files = serve(address)
    run(**request, files=files)


if __name__ == "__main__":
    main(sys.argv[1])
