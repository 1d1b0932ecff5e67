import asyncio
import json
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STATUS = {"step": 0}


class StatusHandler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps(STATUS).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def serve_status():
    server = ThreadingHTTPServer(("127.0.0.1", 0), StatusHandler)
    threading.Thread(target=server.serve_forever, name="status-http", daemon=True).start()
    return server


class NegativeMiner:
    """Looks up hard negatives on an asyncio loop of its own; used only at the start of a round."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, name="miner-loop", daemon=True).start()

    async def _lookup(self, query):
        await asyncio.sleep(0.05 * (1 + query % 3))
        return (query * 7919) % 1000

    async def _mine(self, queries):
        return await asyncio.gather(*(self._lookup(q) for q in queries))

    def mine(self, queries):
        return asyncio.run_coroutine_threadsafe(self._mine(queries), self.loop).result()


class SpellHelper:
    """Line in, line out helper process; most of the time it waits for its next line."""

    CODE = "import sys\nfor line in sys.stdin:\n    sys.stdout.write(line.lower())\n    sys.stdout.flush()\n"

    def __init__(self):
        self.proc = subprocess.Popen([sys.executable, "-c", self.CODE], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True)

    def fix(self, text):
        self.proc.stdin.write(text + "\n")
        self.proc.stdin.flush()
        return self.proc.stdout.readline().strip()


def export_index(pool: ThreadPoolExecutor, step):
    """Rebuilds the retrieval index of this rank in the pool and waits for all its parts."""
    parts = [pool.submit(time.sleep, 1.5 + 0.5 * (i % 2)) for i in range(8)]
    for part in parts:
        part.result()
    return step
