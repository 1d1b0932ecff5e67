import argparse
import logging

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP

from icefall.checkpoint import save_checkpoint_with_global_batch_idx
from icefall.model import AsrModel, fbank_batches


def run(rank, args):
    logging.basicConfig(level=logging.INFO,
                        format=f"%(asctime)s %(levelname)s [%(filename)s:%(lineno)d] ({rank}/{args.world_size}) %(message)s")
    dist.init_process_group("gloo", rank=rank, world_size=args.world_size)
    torch.manual_seed(42)
    model = DDP(AsrModel())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    logging.info("Training started")
    for batch_idx, (feats, labels) in enumerate(fbank_batches(rank), start=1):
        loss = model(feats, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if batch_idx % 10 == 0:
            logging.info("Epoch 1, batch %d, loss[loss=%.4f], batch size: %d", batch_idx, loss.item(), len(feats))
        if batch_idx % args.save_every_n == 0 and rank == 0:
            save_checkpoint_with_global_batch_idx(args.exp_dir, batch_idx, model, optimizer)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--world-size", type=int, default=1)
    ap.add_argument("--exp-dir", default="exp")
    ap.add_argument("--save-every-n", type=int, default=20)
    a = ap.parse_args()
    mp.spawn(run, args=(a,), nprocs=a.world_size)
