"""`transformers serve` with the tiny model of the demonstration, under the agent.

    python -m weighbridge.capture.demo_serve SPOOL KEY_FILE       prints a JSON line: its port; SIGTERM ends it

The model is written to a temporary folder and served from there by what `transformers serve` itself runs, on loopback.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
from pathlib import Path

from weighbridge.capture import demo_model
from weighbridge.capture.adapters import transformers_serve
from weighbridge.capture.context import Context
from weighbridge.capture.recorder import Recorder

_START_S = 60.0


def main(spool: Path, key: bytes) -> None:
    """Serve on a free port of loopback until SIGTERM.

    Raises:
        RuntimeError: the server did not come up.
    """
    asked_to_end = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: asked_to_end.set())
    engine = Recorder.start(spool, installation="serve-engine", key=key)
    server = Recorder.start(spool, installation="serve-server", key=key)
    about = Context(provider="openai", framework="transformers")
    with (
        tempfile.TemporaryDirectory() as folder,
        transformers_serve.install(server, engine, context=about, usage=False),
    ):
        demo_model.save(Path(folder) / demo_model.MODEL)
        os.chdir(folder)  # the server calls a model as it is told to load it: a name, not a path
        _serve(asked_to_end)
    server.close()
    engine.close()


def _serve(asked_to_end: threading.Event) -> None:
    from transformers import __version__  # noqa: PLC0415 - frameworks are imported where they are used
    from transformers.cli.serve import Serve  # noqa: PLC0415 - as above

    served = Serve(demo_model.MODEL, host="127.0.0.1", port=0, device="cpu", log_level="error", non_blocking=True)
    try:
        for _ in range(int(_START_S / 0.05)):
            if served.server.started or asked_to_end.wait(0.05):
                break
        if not served.server.started:
            raise RuntimeError(f"transformers serve {__version__} did not listen within {_START_S:.0f} s")
        (listening,) = served.server.servers
        told = {"version": __version__, "port": listening.sockets[0].getsockname()[1]}
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # its access log goes to stdout, which nobody reads any more
        asked_to_end.wait()
    finally:
        served.kill_server()


if __name__ == "__main__":
    main(Path(sys.argv[1]), bytes.fromhex(Path(sys.argv[2]).read_text(encoding="ascii")))
