import argparse
import shutil
import tempfile

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from .snapshots import SnapshotStore
from .trainer import Trainer


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--replicas", type=int, default=2)
    p.add_argument("--max-steps", type=int, default=100000)
    p.add_argument("--snapshot-every", type=int, default=40)
    p.add_argument("--spike-factor", type=float, default=1.6)
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    world = dist.get_world_size()
    mesh = init_device_mesh("cpu", (args.replicas, world // args.replicas), mesh_dim_names=("replicate", "shard"))

    folder = [tempfile.mkdtemp(prefix="snap-") if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(folder, src=0)
    try:
        Trainer(mesh, SnapshotStore(folder[0], mesh), args).fit()
    finally:
        if dist.get_rank() == 0:
            shutil.rmtree(folder[0], ignore_errors=True)
    dist.destroy_process_group()


main()
