import os
import shutil
import tempfile
import time
from contextlib import contextmanager

import torch

HERE = os.path.dirname(os.path.abspath(__file__))


def stage_in(src=os.path.join(HERE, "corpus")):
    dst = os.path.join(tempfile.gettempdir(), f"corpus-{os.getuid()}-{os.environ['MASTER_PORT']}")
    shutil.copytree(src, dst, dirs_exist_ok=True)
    return dst


@contextmanager
def exclusive(path, poll=0.2):
    while True:
        try:
            fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            break
        except FileExistsError:
            time.sleep(poll)
    os.write(fd, f"{os.getpid()}@{os.uname().nodename}\n".encode())
    os.close(fd)
    try:
        yield
    finally:
        os.unlink(path)


class ShardStore:
    """Token ids of text shards; each shard is tokenised once and kept next to its source."""

    def __init__(self, root):
        self.root = root
        self.names = sorted(n for n in os.listdir(root) if n.endswith(".txt"))

    def tokens(self, name):
        source = os.path.join(self.root, name)
        cached = source[:-4] + ".ids.pt"
        with exclusive(os.path.join(self.root, ".lock", name[:-4])):
            if not os.path.exists(cached):
                with open(source) as f:
                    ids = torch.tensor([ord(c) % 128 for c in f.read()])
                time.sleep(0.3)
                torch.save(ids, cached)
        return torch.load(cached)
