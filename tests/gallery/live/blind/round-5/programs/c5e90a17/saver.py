import datetime, os, torch


class Saver:
    def __init__(self, root, rank, world, store):
        os.makedirs(root, exist_ok=True)
        self.root, self.rank, self.world, self.store = root, rank, world, store

    def requeue_point(self, model, step):
        """write own shard, then leave together when everybody's shard is on disk"""
        torch.save({"m": model.state_dict(), "step": step}, f"{self.root}/shard{self.rank}.pt")
        self.store.set(f"requeue/{self.rank}", str(step))
        self.store.wait([f"requeue/{r}" for r in range(self.world)], datetime.timedelta(hours=6))
        print(f"rank {self.rank}: all shards written, leaving", flush=True)
