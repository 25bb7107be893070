"""Notes, in the file that `WATCHED` names, every host this process looks up or connects to that is not loopback.

Python loads it before anything else wherever this folder is on `PYTHONPATH`: in a server, a worker, and all they start.
"""

from __future__ import annotations

import os
import sys

LOOPBACK = {None, "", "127.0.0.1", "localhost", "::1", "0.0.0.0", b"127.0.0.1", b"localhost"}
PLACE = {"socket.connect": 1, "socket.sendto": 1, "socket.getaddrinfo": 0, "socket.gethostbyname": 0}


def watch(event: str, arguments: tuple[object, ...]) -> None:
    """Look at one event of the interpreter."""
    if event in PLACE:
        told = arguments[PLACE[event]]
        host = told[0] if isinstance(told, tuple) else told
        if host not in LOOPBACK and not str(host).startswith("/"):  # a path is a socket of this machine
            with open(os.environ["WATCHED"], "a", encoding="utf-8") as file:  # noqa: PTH123 - before anything is loaded
                file.write(f"{event} {host}\n")


if "WATCHED" in os.environ:
    sys.addaudithook(watch)
