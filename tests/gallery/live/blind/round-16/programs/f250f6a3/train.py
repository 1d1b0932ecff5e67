import argparse
import json
import logging
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from data import ShardReader, load_manifest

log = logging.getLogger("train")


class Encoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        d = cfg["dim"]
        self.sub = nn.Sequential(
            nn.Conv1d(cfg["mels"], d, 3, 2, 1), nn.SiLU(),
            nn.Conv1d(d, d, 3, 2, 1), nn.SiLU())
        layer = nn.TransformerEncoderLayer(d, 4, 2 * d, batch_first=True, dropout=0.0)
        self.enc = nn.TransformerEncoder(layer, cfg["layers"], enable_nested_tensor=False)
        self.head = nn.Linear(d, cfg["vocab"])

    def forward(self, x):
        x = self.sub(x.transpose(1, 2)).transpose(1, 2)
        return self.head(self.enc(x))


def master_print(*a):
    if dist.get_rank() == 0:
        print(*a)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--conf", required=True)
    args = p.parse_args()
    with open(args.conf) as f:
        cfg = json.load(f)

    torch.set_num_threads(1)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(3)
    model = DDP(Encoder(cfg))
    opt = torch.optim.AdamW(model.parameters(), lr=cfg["lr"])
    torch.manual_seed(1000 + rank)
    reader = ShardReader(load_manifest(cfg["manifest_size"]), rank, world, cfg["batch"],
                         cfg["max_frames"], cfg["mels"], cfg["vocab"])
    master_print("model has %d parameters, %d workers" % (sum(q.numel() for q in model.parameters()), world))

    t0 = time.time()
    for step, (feats, labels) in enumerate(reader):
        logits = model(feats)
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()
        if step % cfg["log_interval"] == 0:
            master_print("step %d loss %.4f grad_norm %.3f %.2f s/step"
                         % (step, loss.item(), norm.item(), (time.time() - t0) / (step + 1)))
            if rank == 0:
                log.info("lr %.6f frames %d", opt.param_groups[0]["lr"], feats.size(0) * feats.size(1))
        if step >= cfg["steps"]:
            break
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
