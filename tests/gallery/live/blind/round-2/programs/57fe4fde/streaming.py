import json
import logging
import os
import random
import time
import urllib.error
import urllib.request

import torch
from torch.utils.data import IterableDataset, get_worker_info

log = logging.getLogger("streaming")


def read_with_retries(url, max_retries=40):
    for retry in range(1, max_retries + 1):
        try:
            with urllib.request.urlopen(url, timeout=30) as r:
                return json.load(r)
        except (urllib.error.URLError, ConnectionError, TimeoutError) as e:
            wait = min(0.5 * 2**retry, 5) * random.uniform(0.8, 1.2)
            log.warning("Got disconnected from remote data host (%s). Retrying in %.1fs [%d/%d]", e, wait, retry, max_retries)
            time.sleep(wait)
    raise ConnectionError(url)


class RemoteRows(IterableDataset):
    def __init__(self, rank, world):
        self.rank, self.world = rank, world

    def __iter__(self):
        logging.basicConfig(level=logging.INFO, format=f"%(asctime)s rank{self.rank} worker: %(message)s")
        info = get_worker_info()
        part = self.rank * info.num_workers + info.id
        while True:
            for row in read_with_retries(f"{os.environ['DATA_URL']}/part/{part}"):
                yield torch.tensor(row)
            part += self.world * info.num_workers
