import io
import time
from datetime import timedelta

import torch
import torch.distributed as dist


def connect(host, port, rank):
    return dist.TCPStore(host, port, is_master=rank == 0, timeout=timedelta(minutes=20), wait_for_workers=False)


def dump(obj):
    buf = io.BytesIO()
    torch.save(obj, buf)
    return buf.getvalue()


def parse(raw):
    return torch.load(io.BytesIO(raw), weights_only=True)


class WeightBoard:
    def __init__(self, store):
        self.store = store

    def publish(self, version, state):
        self.store.set(f"weights/{version}", dump(state))
        self.store.set("version", str(version))
        if version > 2:
            self.store.delete_key(f"weights/{version - 2}")

    def wait_newer(self, version):
        while True:
            if self.store.check(["version"]):
                now = int(self.store.get("version"))
                if now > version:
                    return now, parse(self.store.get(f"weights/{now}"))
            time.sleep(0.05)


class RolloutBox:
    def __init__(self, store):
        self.store = store

    def put(self, rank, version, batch):
        self.store.set(f"rollout/{version}/{rank}", dump(batch))

    def take(self, ranks, version):
        out = []
        for r in ranks:
            key = f"rollout/{version}/{r}"
            while not self.store.check([key]):
                time.sleep(0.02)
            out.append(parse(self.store.get(key)))
            self.store.delete_key(key)
        return out
