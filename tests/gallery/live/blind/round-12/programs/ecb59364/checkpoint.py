import os
import shutil
import tempfile

import torch
import torch.distributed as dist

from coord import StoreBarrier


class ShardedCheckpointer:
    """Rank 0 writes the model and the manifest, every rank its part of the optimizer state."""

    def __init__(self, keep=2):
        self.rank, self.world, self.keep = dist.get_rank(), dist.get_world_size(), keep
        root = [tempfile.mkdtemp(prefix="ckpt-") if self.rank == 0 else None]
        dist.broadcast_object_list(root, src=0)
        self.root, self.done = root[0], []
        self.barrier = StoreBarrier("checkpoint")

    def _write(self, obj, path):
        with open(path + ".tmp", "wb") as f:
            torch.save(obj, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(path + ".tmp", path)

    def save(self, step, model, opt):
        out = os.path.join(self.root, f"step{step}")
        os.makedirs(out, exist_ok=True)
        state = opt.state_dict()["state"]
        mine = {k: v for k, v in state.items() if k % self.world == self.rank}
        self._write(mine, os.path.join(out, f"optim{self.rank}.pt"))
        if self.rank == 0:
            for name, tensor in model.state_dict().items():
                self._write(tensor, os.path.join(out, f"{name}.pt"))
        self.barrier.wait()
        if self.rank == 0:
            with open(os.path.join(out, "COMPLETE"), "w") as f:
                f.write(str(step))
            self.done.append(out)
            while len(self.done) > self.keep:
                shutil.rmtree(self.done.pop(0))
        return out
