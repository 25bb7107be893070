"""What the ASGI middleware adds to the slowest answers of a server on loopback.

    python benchmarks/capture_asgi.py [--rounds 20] [--calls 200]

One server process, the same application twice: bare, and under the middleware with a recorder. Each round asks both,
in turn and in changing order, one call after another over kept-open connections, and takes the 99th percentile of each;
what counts is the median over the rounds of the difference. Target: at most 0.5 ms.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import socket
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

USAGE = {
    "prompt_tokens": 400,
    "completion_tokens": 150,
    "total_tokens": 550,
    "prompt_tokens_details": {"cached_tokens": 0},
}
ANSWER = {
    "id": "chatcmpl-1",
    "model": "tiny",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "word " * 150}, "finish_reason": "stop"}],
    "usage": USAGE,
}
ASKED = {"model": "tiny", "max_tokens": 200, "messages": [{"role": "user", "content": "word " * 400}]}


def serve(sockets: list[socket.socket], spool: Path) -> None:
    """Run both applications in this process, each on its own socket."""
    import asyncio

    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    from weighbridge.capture.adapters.asgi import CaptureMiddleware
    from weighbridge.capture.recorder import Recorder

    async def chat(request: Request) -> JSONResponse:
        await request.json()
        return JSONResponse(ANSWER)

    def app() -> Any:
        return Starlette(routes=[Route("/v1/chat/completions", chat, methods=["POST"])])

    recorder = Recorder.start(spool, installation="bench", key=bytes(32))
    servers = [
        uvicorn.Server(uvicorn.Config(made, log_level="error", access_log=False))
        for made in (app(), CaptureMiddleware(app(), recorder))
    ]

    async def both() -> None:
        await asyncio.gather(*(server.serve([own]) for server, own in zip(servers, sockets, strict=True)))

    asyncio.run(both())


def measure(ports: list[int], rounds: int, calls: int) -> list[tuple[float, float, float, float]]:
    """Per round: p50 and p99 of the bare server, p50 and p99 of the watched one, in milliseconds."""
    import httpx

    body, out = json.dumps(ASKED).encode(), []
    order = random.Random(7)
    with httpx.Client(headers={"content-type": "application/json"}) as client:
        for number in range(rounds + 1):
            seen: dict[int, list[float]] = {port: [] for port in ports}
            for _ in range(calls):
                for port in order.sample(ports, 2):
                    began = time.perf_counter_ns()
                    client.post(f"http://127.0.0.1:{port}/v1/chat/completions", content=body).raise_for_status()
                    seen[port].append((time.perf_counter_ns() - began) / 1e6)
            figures = [point for port in ports for point in (quantile(seen[port], 0.5), quantile(seen[port], 0.99))]
            if number:  # the first round warms up
                out.append((figures[0], figures[1], figures[2], figures[3]))
    return out


def listening() -> socket.socket:
    """A loopback socket that asyncio knows for TCP: only then it turns off the wait for fuller packets."""
    own = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    own.bind(("127.0.0.1", 0))
    own.listen(16)
    return own


def quantile(values: list[float], share: float) -> float:
    """The value at that share of the sorted values, nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def main() -> int:
    """Serve, ask, print; 1 where the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--calls", type=int, default=200)
    options = parser.parse_args()
    sockets = [listening() for _ in range(2)]
    ports = [own.getsockname()[1] for own in sockets]
    with tempfile.TemporaryDirectory() as folder:
        server = multiprocessing.get_context("fork").Process(target=serve, args=(sockets, Path(folder)), daemon=True)
        server.start()
        for own in sockets:
            own.close()
        try:
            rounds = measure(ports, options.rounds, options.calls)
        finally:
            server.terminate()
            server.join(10)
    p50 = statistics.median(watched - bare for bare, _, watched, _ in rounds)
    p99 = statistics.median(watched - bare for _, bare, _, watched in rounds)
    print(f"rounds {len(rounds)}, calls a round and server {options.calls}")
    for name, at in (("bare", 0), ("watched", 2)):
        figures = [statistics.median(figures[at + offset] for figures in rounds) for offset in (0, 1)]
        print(f"{name:8} p50 {figures[0]:.3f} ms   p99 {figures[1]:.3f} ms")
    print(f"median difference  p50 {p50:+.3f} ms   p99 {p99:+.3f} ms   (target: p99 at most +0.500 ms)")
    return int(p99 > 0.5)


if __name__ == "__main__":
    raise SystemExit(main())
