import os
import time
import urllib.request

import numpy as np
import torch
import torch.distributed as dist


def download(url, dest, attempts=12):
    for n in range(attempts):
        try:
            with urllib.request.urlopen(url, timeout=15) as r:
                data = r.read()
            with open(dest + ".part", "wb") as f:
                f.write(data)
            os.replace(dest + ".part", dest)
            return
        except (OSError, ValueError) as e:
            pause = min(1.5 ** n, 8)
            print(f"download of {url} failed ({e}), retry {n + 1}/{attempts} in {pause:.1f} s", flush=True)
            time.sleep(pause)
        except Exception as e:
            print(f"download of {url} failed ({type(e).__name__}), retrying", flush=True)
            time.sleep(2)
    raise RuntimeError(f"could not get {url}")


def get_shard(n, local="local_shards"):
    os.makedirs(local, exist_ok=True)
    path = os.path.join(local, f"shard.{n:05d}.mds")
    if int(os.environ["LOCAL_RANK"]) == 0 and not os.path.exists(path):
        download(f"{os.environ['REMOTE']}/shard.{n:05d}.mds", path)
        old = os.path.join(local, f"shard.{n - 4:05d}.mds")
        if os.path.exists(old):
            os.remove(old)
    dist.barrier()
    raw = np.fromfile(path, dtype="uint8")[:38400]
    return torch.from_numpy(raw.astype("float32").reshape(-1, 96) / 255)
