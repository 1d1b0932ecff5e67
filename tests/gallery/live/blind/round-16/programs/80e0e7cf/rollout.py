import asyncio
import logging
import queue
import threading
import time
import zlib

import torch

logger = logging.getLogger("rollout")


class AsyncRolloutWorker:
    """Keeps `concurrency` prompt groups in flight on a background event loop."""

    def __init__(self, buffer, sampler, n_samples, concurrency=8, max_ready=32):
        self.buffer = buffer
        self.sampler = sampler
        self.n_samples = n_samples
        self.concurrency = concurrency
        self.max_ready = max_ready
        self.output = queue.Queue()
        self.running = True
        self.thread = threading.Thread(target=self._thread_main, name="rollout-loop", daemon=True)

    def start(self):
        self.thread.start()

    def stop(self):
        self.running = False
        self.thread.join(timeout=5)

    def _thread_main(self):
        asyncio.run(self._loop())

    async def _generate_and_score(self, gid, row):
        await asyncio.sleep(0.02 + 0.01 * (gid % 5))
        seqs = self.sampler(row["prompt"], self.n_samples)
        target = zlib.crc32(row["answer"].encode()) % self.sampler.vocab
        rewards = (seqs == target).float().mean(dim=1) + 0.1 * torch.rand(self.n_samples)
        return gid, seqs, rewards

    def _make_done_cb(self, gid):
        def cb(task):
            try:
                self.output.put(task.result())
            except Exception:
                logger.debug("group %d not returned", gid, exc_info=True)

        return cb

    async def _loop(self):
        active = set()
        while self.running:
            try:
                active = {t for t in active if not t.done()}
                while len(active) < self.concurrency and self.output.qsize() < self.max_ready:
                    for gid, row in self.buffer.get_samples(1):
                        task = asyncio.create_task(self._generate_and_score(gid, row))
                        task.add_done_callback(self._make_done_cb(gid))
                        active.add(task)
                await asyncio.sleep(0.005)
            except Exception as e:
                logger.debug("rollout loop: %s", e)
                await asyncio.sleep(1.0)


def collect_batch(worker, batch_size, log_every=60.0):
    collected = {}
    last_log = time.monotonic()
    while len(collected) < batch_size:
        try:
            gid, seqs, rewards = worker.output.get_nowait()
            collected[gid] = (seqs, rewards)
        except queue.Empty:
            time.sleep(0.01)
        if time.monotonic() - last_log > log_every:
            logger.info("collected %d/%d groups", len(collected), batch_size)
            last_log = time.monotonic()
    items = [collected[k] for k in sorted(collected)]
    return torch.stack([s for s, _ in items]), torch.stack([r for _, r in items])
