import argparse
import json
import logging
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader

from data import Scenes
from model import PanopticNet

log = logging.getLogger("segment")


def shard(model, mesh):
    for layer in model.layers:
        fully_shard(layer, mesh=mesh, reshard_after_forward=False)
    fully_shard(model.mask_head, mesh=mesh, reshard_after_forward=False)
    return fully_shard(model, mesh=mesh, reshard_after_forward=False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", required=True)
    cfg = json.load(open(parser.parse_args().config))
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO if rank == 0 else logging.WARNING,
                        format="%(asctime)s %(name)s %(message)s")
    mesh = init_device_mesh("cpu", (world,), mesh_dim_names=("dp",))

    torch.manual_seed(11)
    model = shard(PanopticNet(cfg), mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg["lr"], foreach=False)
    loader = iter(DataLoader(Scenes(cfg, rank), batch_size=None))
    log.info("parameters %.2fM on %d ranks", sum(p.numel() for p in model.parameters()) / 1e6, world)

    mark = time.time()
    for step in range(cfg["steps"]):
        patches, label, annotated, mask = next(loader)
        logits, masks = model(patches, annotated)
        loss = F.cross_entropy(logits, label)
        if masks is not None:
            loss = loss + cfg["mask_loss_weight"] * F.cross_entropy(masks.flatten(0, 1), mask[annotated].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 10 == 0:
            log.info("step %d loss %.4f (%d annotated) %.2fs", step, loss.item(), int(annotated.sum()),
                     time.time() - mark)
            mark = time.time()

    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
