import multiprocessing as mp
import os
import threading
import time


def _sink(conn):
    history = []
    while True:
        item = conn.recv()
        if item is None:
            return
        history.append(item)
        del history[:-1000]


class MetricSink:
    """Keeps metric history out of the training process."""

    def __init__(self):
        ctx = mp.get_context("spawn")
        recv, self.conn = ctx.Pipe(duplex=False)
        self.proc = ctx.Process(target=_sink, args=(recv,), daemon=True)
        self.proc.start()
        recv.close()

    def log(self, **kw):
        self.conn.send(kw)


class Heartbeat(threading.Thread):
    def __init__(self, path, period=10.0):
        super().__init__(name="heartbeat", daemon=True)
        self.path, self.period = path, period
        self.stop = threading.Event()

    def run(self):
        while not self.stop.wait(self.period):
            with open(self.path, "w") as f:
                f.write(f"{os.getpid()} {time.time():.0f}\n")
