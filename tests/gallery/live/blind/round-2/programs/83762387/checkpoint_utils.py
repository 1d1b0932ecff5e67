import contextlib
import hashlib
import logging
import os
import time
import urllib.request

import torch.distributed as dist

log = logging.getLogger("checkpoint")


@contextlib.contextmanager
def local_rank_zero_download_and_wait(path):
    """Other ranks poll the file system instead of a barrier, so that a long download meets no process group timeout."""
    if int(os.environ["LOCAL_RANK"]) != 0:
        log.info("waiting for %s", path)
        while not os.path.exists(path):
            time.sleep(0.2)
    yield


def download(url, dest):
    tmp = dest + ".part"
    with urllib.request.urlopen(url) as r, open(tmp, "wb") as f:
        f.write(r.read())
    with urllib.request.urlopen(url + ".sha256") as r:
        expected = r.read().decode()
    with open(tmp, "rb") as f:
        actual = hashlib.sha256(f.read()).hexdigest()
    if actual != expected:
        os.remove(tmp)
        raise RuntimeError(f"checksum of {url} is {actual[:12]}, expected {expected[:12]}")
    os.replace(tmp, dest)


def fetch_checkpoint(path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with local_rank_zero_download_and_wait(path):
        if int(os.environ["LOCAL_RANK"]) == 0:
            log.info("downloading %s", path)
            download(f"{os.environ['REGISTRY']}/{path}", path)
    dist.barrier()
    return path
