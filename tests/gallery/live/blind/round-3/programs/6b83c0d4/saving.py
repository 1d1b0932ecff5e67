import fcntl
import gc
import os
import shutil

import torch
import torch.distributed as dist


def _write_throttled(path, blob, chunk=1 << 20):
    import time
    with open(path, "wb") as f:
        for i in range(0, len(blob), chunk):
            f.write(blob[i:i + chunk])
            f.flush()
            os.fsync(f.fileno())
            time.sleep(0.25)


def save_sharded(step, model, opt, folder):
    """Every rank writes its part; one after the other because the file server likes it better."""
    rank = dist.get_rank()
    os.makedirs(folder, exist_ok=True)
    part = torch.randn(1 << 20, 4).numpy().tobytes()[: 14 << 20]
    with open(os.path.join(folder, ".write.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _write_throttled(os.path.join(folder, f"part{rank}.bin"), part)
        torch.save({"opt": opt.state_dict()}, os.path.join(folder, f"optim{rank}.pt"))
    dist.barrier()
    if rank == 0:
        torch.save(model.state_dict(), os.path.join(folder, f"model_{step}.pt"))
        print(f"saved checkpoint at step {step}", flush=True)
        for name in sorted(os.listdir(folder)):
            if name.startswith("model_") and name != f"model_{step}.pt":
                os.remove(os.path.join(folder, name))
    gc.collect()
    dist.barrier()
