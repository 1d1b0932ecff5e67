import datetime, io, os
import torch
import torch.distributed as dist


class Courier:
    """mailbox between the nodes"""

    def __init__(self):
        self.rank, self.world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.kv = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), self.world,
                                self.rank == 0, datetime.timedelta(hours=12))

    def post(self, key, obj):
        b = io.BytesIO(); torch.save(obj, b)
        self.kv.set(key, b.getvalue())

    def fetch(self, key):
        return torch.load(io.BytesIO(self.kv.get(key)))
