import functools
import http.server
import os
import queue
import threading
import time
import urllib.request

import numpy as np
import webdataset as wds


def every_shard(src):
    yield from src


def write_shards(root, count=12, per_shard=320):
    os.makedirs(root, exist_ok=True)
    rng = np.random.default_rng(0)
    for s in range(count):
        with wds.TarWriter(os.path.join(root, f"train-{s:04d}.tar")) as sink:
            for i in range(per_shard):
                y = int(rng.integers(0, 10))
                x = rng.standard_normal((3, 16, 16)).astype(np.float32) + 0.2 * y
                sink.write({"__key__": f"{s:04d}{i:05d}", "x.npy": x, "cls": y})


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def serve(root):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(QuietHandler, directory=root))
    threading.Thread(target=server.serve_forever, name="shard-server", daemon=True).start()
    return server.server_address[1]


class ShardFetcher:
    """Downloads shards ahead of their use, at a limited rate, and deletes them afterwards."""

    def __init__(self, port, cache, rank, world, shards=12, ahead=2, rate=2e7):
        self.port, self.cache, self.rate = port, cache, rate
        self.names = [f"train-{s:04d}.tar" for s in range(shards)][rank::world]
        self.ready = queue.Queue(maxsize=ahead)
        os.makedirs(cache, exist_ok=True)
        threading.Thread(target=self._run, name="shard-fetch", daemon=True).start()

    def _run(self):
        turn = 0
        while True:
            for name in self.names:
                dst = os.path.join(self.cache, f"{turn:05d}-{name}")
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{name}") as src, open(dst, "wb") as out:
                    while chunk := src.read(1 << 16):
                        out.write(chunk)
                        time.sleep(len(chunk) / self.rate)
                self.ready.put(dst)
                turn += 1

    def batches(self, size):
        while True:
            path = self.ready.get()
            yield from wds.WebDataset(path, shardshuffle=False, nodesplitter=every_shard).shuffle(200).decode().to_tuple("x.npy", "cls").batched(size)
            os.unlink(path)
