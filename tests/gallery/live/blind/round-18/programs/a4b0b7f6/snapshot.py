import gzip
import hashlib
import os
import shutil

import torch
import torch.distributed as dist


class Snapshotter:
    """Each rank writes the state of the parameters it owns; the parts become one file."""

    def __init__(self, run_dir, model, optimizer, keep=2):
        self.run_dir, self.model, self.optimizer, self.keep = run_dir, model, optimizer, keep
        self.rank, self.world = dist.get_rank(), dist.get_world_size()

    def owned(self):
        return [n for i, (n, _) in enumerate(self.model.named_parameters()) if i % self.world == self.rank]

    def write_part(self, scratch):
        params = dict(self.model.named_parameters())
        part = {n: {"value": params[n].detach(), "optim": dict(self.optimizer.state[params[n]])}
                for n in self.owned()}
        torch.save(part, os.path.join(scratch, f"rank_{self.rank}.pth"))

    def assemble(self, step, scratch):
        full = {}
        for r in range(self.world):
            full.update(torch.load(os.path.join(scratch, f"rank_{r}.pth"), weights_only=False))
        target = os.path.join(self.run_dir, f"state_{step}.pth.gz")
        with gzip.open(target, "wb", compresslevel=6) as f:
            torch.save({"step": step, "state": full}, f)
        with open(target, "rb") as f:
            digest = hashlib.sha256(f.read()).hexdigest()
        with open(target + ".sha256", "w") as f:
            f.write(digest)
        for old in sorted(os.listdir(self.run_dir), key=lambda n: os.path.getmtime(os.path.join(self.run_dir, n)))[:-2 * self.keep]:
            os.remove(os.path.join(self.run_dir, old))

    def snapshot(self, step):
        scratch = os.path.join(self.run_dir + "-scratch", f"step_{step}")
        os.makedirs(scratch, exist_ok=True)
        self.write_part(scratch)
        dist.barrier()
        if self.rank == 0:
            self.assemble(step, scratch)
            shutil.rmtree(scratch)
        dist.barrier()
