import multiprocessing as mp
import time
import zlib


def _serve(conn):
    kept = []
    while True:
        try:
            text = conn.recv()
        except EOFError:
            return
        kept.append(zlib.compress(text.encode(), 9))
        del kept[:-50]
        time.sleep(0.5)


class MetricSidecar:
    """Compresses metric lines in a process of its own."""

    def __init__(self):
        ctx = mp.get_context("spawn")
        here, there = ctx.Pipe()
        self.conn = here
        self.proc = ctx.Process(target=_serve, args=(there,), daemon=True, name="metric-sidecar")
        self.proc.start()
        there.close()

    def send(self, text):
        self.conn.send(text)
