import logging
import os
import threading
import time
import urllib.request

import torch

log = logging.getLogger("prefetch")


class ShardPrefetcher:
    """Downloads the next shards in the background; the reader polls for the finished file."""

    def __init__(self, base_url, cache, dp_rank, ahead=3):
        self.base_url, self.cache, self.dp_rank, self.ahead = base_url, cache, dp_rank, ahead
        os.makedirs(cache, exist_ok=True)
        self.consumed = 0
        self.wake = threading.Condition()
        threading.Thread(target=self._run, name="shard-download", daemon=True).start()

    def _path(self, index):
        return os.path.join(self.cache, f"shard-{self.dp_rank}-{index:05d}.bin")

    def _run(self):
        index = 0
        while True:
            with self.wake:
                while index >= self.consumed + self.ahead:
                    self.wake.wait()
            data = urllib.request.urlopen(f"{self.base_url}/part-{self.dp_rank}/{index}").read()
            tmp = self._path(index) + ".part"
            with open(tmp, "wb") as f:
                f.write(data)
            os.replace(tmp, self._path(index))
            index += 1

    def shards(self):
        while True:
            path = self._path(self.consumed)
            while not os.path.exists(path):
                time.sleep(0.01)
            rows = torch.frombuffer(bytearray(open(path, "rb").read()), dtype=torch.int16).long().view(-1, 33)
            os.remove(path)
            with self.wake:
                self.consumed += 1
                self.wake.notify()
            yield rows
