import os
import shutil
import threading
from datetime import timedelta

import torch
import torch.distributed as dist


class AsyncSaver:
    def __init__(self, root, store, keep=2):
        self.root, self.store, self.keep = root, dist.PrefixStore("ckpt", store), keep
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self._thread = None
        self._done = []

    def wait(self):
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def save(self, step, model, stream):
        self.wait()
        tmp = os.path.join(self.root, f"step-{step:06d}.tmp")
        if self.rank == 0:
            os.makedirs(tmp)
        dist.barrier()
        shard = {k: v.to_local().clone() for k, v in model.state_dict().items()}
        payload = {"model": shard, "stream": stream.state_dict(), "step": step}
        self._thread = threading.Thread(target=self._write, args=(step, tmp, payload), name=f"save-{step}", daemon=True)
        self._thread.start()

    def _write(self, step, tmp, payload):
        torch.save(payload, os.path.join(tmp, f"shard-{self.rank}.pt"))
        self.store.set(f"{step}/{self.rank}", "written")
        if self.rank == 0:
            self.store.wait([f"{step}/{r}" for r in range(self.world)], timedelta(hours=4))
            final = tmp[: -len(".tmp")]
            os.rename(tmp, final)
            self._done.append(final)
            while len(self._done) > self.keep:
                shutil.rmtree(self._done.pop(0))
            print(f"committed {os.path.basename(final)}", flush=True)
