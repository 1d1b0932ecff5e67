import os
import threading

import torch
import torch.distributed as dist


class CheckpointManager:
    def __init__(self, folder):
        self.folder = folder
        self.staging = None
        os.makedirs(folder, exist_ok=True)

    def _write(self, state, path):
        torch.save(state, path + ".tmp")
        os.replace(path + ".tmp", path)

    def save(self, step, model):
        self.wait()
        state = {k: v.clone() for k, v in model.state_dict().items()}
        path = os.path.join(self.folder, f"step-{step}-rank{dist.get_rank()}.pt")
        self.staging = threading.Thread(target=self._write, args=(state, path))
        self.staging.start()

    def wait(self):
        if self.staging is not None:
            self.staging.join()
            self.staging = None

    def close(self):
        self.wait()
        dist.barrier()
