import multiprocessing as mp
import time

import torch

SLOTS, TILE = 64, 48


def decode_tile(index, layers):
    gen = torch.Generator().manual_seed(index)
    tile = torch.rand(TILE, generator=gen)
    for _ in range(layers):
        tile = (tile * 1.01).clamp(0, 1)
        time.sleep(0.02)
    return tile


class TileCache:
    """Tiles in shared memory: the warmer fills the slots, the loader workers read them."""

    def __init__(self, layers_of):
        self.slots = torch.zeros(SLOTS, TILE).share_memory_()
        self.filled = torch.full((SLOTS,), -1, dtype=torch.long).share_memory_()
        self.lock = mp.Lock()
        self.layers_of = layers_of

    def fill(self, index):
        slot = index % SLOTS
        with self.lock:
            self.filled[slot] = -1
            self.slots[slot] = decode_tile(index, self.layers_of(index))
            self.filled[slot] = index

    def read(self, index):
        slot = index % SLOTS
        with self.lock:
            if int(self.filled[slot]) == index:
                return self.slots[slot].clone()
        return decode_tile(index, 1)


class Warmer:
    """Child process that decodes ahead of the readers."""

    AHEAD = 16

    def __init__(self, cache, tiles):
        self.cache = cache
        self.tiles = tiles
        self.position = mp.Value("q", 0, lock=False)
        self.consumed = mp.Value("q", 0, lock=False)
        self.restarts = 0
        self.process = None

    def _run(self, start):
        for k in range(start, len(self.tiles)):
            while k - self.consumed.value > self.AHEAD:
                time.sleep(0.02)
            self.cache.fill(self.tiles[k])
            self.position.value = k + 1
            time.sleep(0.03)

    def start(self, at=0):
        self.position.value = at
        self.process = mp.get_context("fork").Process(target=self._run, args=(at,), name="tile-warmer", daemon=True)
        self.process.start()

    def restart(self, at):
        self.process.kill()
        self.process.join()
        self.restarts += 1
        self.start(at)
