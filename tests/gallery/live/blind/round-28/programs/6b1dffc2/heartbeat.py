"""Publishes the phase of this rank to a small monitor process over a pipe."""
import multiprocessing as mp
import threading
import time


def _monitor(conn, rank, window):
    last_phase, last_seen = "init", time.time()
    while True:
        if conn.poll(window):
            try:
                last_phase, iteration = conn.recv()
            except EOFError:
                return
            last_seen = time.time()
        elif last_phase == "training":
            print(f"[monitor {rank}] no beat for {time.time() - last_seen:.0f}s", flush=True)


class Heartbeat:
    def __init__(self, rank, every=5.0, window=30.0):
        ctx = mp.get_context("spawn")
        self.conn, child = ctx.Pipe()
        self.proc = ctx.Process(target=_monitor, args=(child, rank, window), daemon=True)
        self.proc.start()
        child.close()
        self.phase, self.iteration, self.every = "init", 0, every
        self.lock = threading.Lock()
        self.paused = threading.Event()
        self.thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self.thread.start()

    def mark(self, phase, iteration):
        with self.lock:
            self.phase, self.iteration = phase, iteration
        if phase == "checkpointing":
            self.paused.set()
        else:
            self.paused.clear()

    def _beat(self):
        while True:
            time.sleep(self.every)
            if self.paused.is_set():
                continue
            with self.lock:
                message = (self.phase, self.iteration)
            self.conn.send(message)
