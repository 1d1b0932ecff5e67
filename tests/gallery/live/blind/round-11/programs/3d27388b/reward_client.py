import atexit
import os
import subprocess
import sys

import httpx


class RewardServer:
    """Runs the scorer next to rank 0."""

    def __init__(self):
        here = os.path.dirname(os.path.abspath(__file__))
        self.proc = subprocess.Popen(
            [sys.executable, os.path.join(here, "scorer_server.py")],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        line = self.proc.stdout.readline()
        self.port = int(line.rsplit(" ", 1)[1])
        atexit.register(self.proc.terminate)


class RewardClient:
    def __init__(self, port):
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=None,
                                 limits=httpx.Limits(max_connections=2))
        self.http.get("/health").raise_for_status()

    def score(self, samples, step):
        reply = self.http.post("/score", json={"samples": samples, "step": step})
        reply.raise_for_status()
        return reply.json()["rewards"]
