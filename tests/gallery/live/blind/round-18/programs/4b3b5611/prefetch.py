import multiprocessing as mp
from dataclasses import dataclass

from hub import fetch


@dataclass
class Mirror:
    block_delay: float = 0.01


class Prefetcher:
    """Warms the cache for the next epoch in a helper process."""

    def __init__(self, cache_dir, mirror):
        self.cache_dir = cache_dir
        self.mirror = mirror
        self.proc = None

    def start(self, name):
        self.proc = mp.get_context("fork").Process(target=fetch, args=(name, self.cache_dir, self.mirror), daemon=True)
        self.proc.start()

    def finish(self, grace=1.0):
        if self.proc is None:
            return
        self.proc.join(grace)
        if self.proc.is_alive():
            self.proc.terminate()
            self.proc.join()
        self.proc = None
