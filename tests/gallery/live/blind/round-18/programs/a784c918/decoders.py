import multiprocessing as mp
import threading
import time

import numpy as np

from records import decode

SHAPE = (48, 64)


def _decoder(idx, tasks, ready, ring, lock, head, slots):
    buf = np.frombuffer(ring, dtype=np.float32).reshape(slots, *SHAPE)
    while True:
        rec = tasks.get()
        if rec is None:
            return
        with lock:
            slot = head.value % slots
            buf[slot] = decode(rec)
            head.value += 1
            ready.put((slot, rec["id"]))


def _rss_mb(pid):
    try:
        with open(f"/proc/{pid}/statm") as f:
            return int(f.read().split()[1]) * 4096 / 2**20
    except (FileNotFoundError, ProcessLookupError):
        return 0.0


class DecoderPool:
    def __init__(self, workers, slots=64, rss_limit_mb=256, log=print):
        ctx = mp.get_context("spawn")
        self.ctx, self.slots, self.limit, self.log = ctx, slots, rss_limit_mb, log
        self.tasks, self.ready = ctx.Queue(), ctx.Queue()
        self.ring = ctx.RawArray("f", slots * SHAPE[0] * SHAPE[1])
        self.head, self.lock = ctx.Value("l", 0, lock=False), ctx.Lock()
        self.view = np.frombuffer(self.ring, dtype=np.float32).reshape(slots, *SHAPE)
        self.procs = [self._start(i) for i in range(workers)]
        threading.Thread(target=self._watch, daemon=True, name="mem-guard").start()

    def _start(self, i):
        p = self.ctx.Process(target=_decoder, daemon=True, name=f"decoder-{i}",
                             args=(i, self.tasks, self.ready, self.ring, self.lock, self.head, self.slots))
        p.start()
        return p

    def _watch(self):
        while True:
            for i, p in enumerate(self.procs):
                used = _rss_mb(p.pid)
                if used > self.limit:
                    self.log(f"decoder-{i} (pid {p.pid}) uses {used:.0f} MB, limit {self.limit} MB: replacing it")
                    p.kill()
                    p.join()
                    self.procs[i] = self._start(i)
            time.sleep(0.2)

    def stream(self, records, ahead=24):
        it, inflight = iter(records), 0
        done = False
        while True:
            while not done and inflight < ahead:
                rec = next(it, None)
                if rec is None:
                    done = True
                    break
                self.tasks.put(rec)
                inflight += 1
            if inflight == 0:
                return
            slot, key = self.ready.get()
            inflight -= 1
            yield key, self.view[slot].copy()
