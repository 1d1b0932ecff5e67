import os
import signal
import time

import torch
import torch.distributed as dist


class RestartFiles:
    """Writes a restart file when the batch system asks for one with SIGUSR1."""

    def __init__(self, out, rank, model, optim):
        self.out = out
        self.rank = rank
        self.model = model
        self.optim = optim
        self.step = 0
        self.group = dist.new_group(backend="gloo")
        signal.signal(signal.SIGUSR1, self._on_notice)
        open(os.path.join(out, f"ready.{rank}"), "w").close()

    def _on_notice(self, signum, frame):
        start = time.time()
        dist.barrier(group=self.group)
        if self.rank == 0:
            path = os.path.join(self.out, "restart.pt")
            torch.save({"model": self.model.state_dict(), "optim": self.optim.state_dict(), "step": self.step}, path + ".tmp")
            os.replace(path + ".tmp", path)
            print(f"restart file at step {self.step} ({time.time() - start:.2f}s)")
        dist.barrier(group=self.group)
