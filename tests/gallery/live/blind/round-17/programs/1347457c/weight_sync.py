"""Colocated weight sync: every trainer rank streams full tensors to its own rollout engine."""
import os
import threading
from multiprocessing.connection import Client, Listener

from torch.distributed.tensor import DTensor

BUCKET_BYTES = 64 << 10


class BucketedSender:
    def __init__(self, path):
        self.path = path
        self.listener = Listener(path, family="AF_UNIX")
        self.conn = None

    def accept(self):
        if self.conn is None:
            self.conn = self.listener.accept()

    def send(self, message):
        self.conn.send(message)
        return self.conn.recv()


class IPCWeightSync:
    def __init__(self, engine, run_dir, rank):
        self.engine = engine
        self.sender = BucketedSender(os.path.join(run_dir, f"weights-{rank}.sock"))
        self.version = 0

    def _buckets(self, named_params):
        bucket, size = [], 0
        for name, param in named_params:
            full = param.detach()
            if isinstance(full, DTensor):
                full = full.full_tensor()
            array = full.numpy().copy()
            bucket.append((name, array))
            size += array.nbytes
            if size >= BUCKET_BYTES:
                yield bucket
                bucket, size = [], 0
        if bucket:
            yield bucket

    def sync(self, module):
        self.version += 1
        reply = {}
        rpc = threading.Thread(
            target=lambda: reply.update(self.engine.call("update_weights", path=self.sender.path, version=self.version)),
            daemon=True,
        )
        rpc.start()
        self.sender.accept()
        self.sender.send(("init", self.version))
        trainable = [(n, p) for n, p in module.named_parameters() if p.requires_grad]
        for bucket in self._buckets(trainable):
            self.sender.send(("bucket", bucket))
        self.sender.send(("done", self.version))
        rpc.join()
        if not reply.get("ok"):
            raise RuntimeError(f"weight update {self.version} failed: {reply.get('error')}")


class EngineClient:
    def __init__(self, path):
        self.path = path
        self.lock = threading.Lock()

    def call(self, method, **kwargs):
        with Client(self.path, family="AF_UNIX") as conn:
            conn.send((method, kwargs))
            return conn.recv()
