import argparse
import logging
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from yesno.asr_datamodule import WORDS, YesNoAsrDataModule
from yesno.model import Tdnn


def get_parser():
    p = argparse.ArgumentParser()
    p.add_argument("--num-epochs", type=int, default=15)
    p.add_argument("--num-workers", type=int, default=2)
    p.add_argument("--batch-size", type=int, default=12)
    p.add_argument("--exp-dir", type=Path, default=Path("exp"))
    return p


def compute_loss(model, batch):
    logp = model(batch["inputs"])
    frames = ((batch["num_frames"] - 2 - 4 - 4) // 2).clamp(max=logp.size(1))
    lens = torch.full((logp.size(0),), batch["targets"].size(1))
    return F.ctc_loss(logp.transpose(0, 1), batch["targets"], frames, lens)


@torch.no_grad()
def compute_validation_loss(model, dl):
    model.eval()
    tot = torch.zeros(2)
    for batch in dl:
        tot += torch.tensor([compute_loss(model.module, batch).item(), 1.0])
    model.train()
    dist.all_reduce(tot)
    return (tot[0] / tot[1]).item()


def train_one_epoch(params, model, opt, train_dl, epoch, rank):
    for i, batch in enumerate(train_dl):
        loss = compute_loss(model, batch)
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()
        if rank == 0 and i % 5 == 0:
            logging.info("Epoch %d, batch %d, loss %.4f, batch size %d", epoch, i, loss.item(), batch["inputs"].size(0))


def main():
    params = get_parser().parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s [%(filename)s:%(lineno)d] %(message)s")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(42)
    model = DDP(Tdnn(23, WORDS))
    opt = torch.optim.SGD(model.parameters(), lr=0.01, weight_decay=5e-4)
    dm = YesNoAsrDataModule(params, rank, world)
    train_dl, valid_dl = dm.train_dataloaders(), dm.test_dataloaders()
    best = float("inf")
    for epoch in range(params.num_epochs):
        t0 = time.time()
        train_dl.sampler.set_epoch(epoch)
        train_one_epoch(params, model, opt, train_dl, epoch, rank)
        valid = compute_validation_loss(model, valid_dl)
        if rank == 0:
            logging.info("Epoch %d done in %.1f s, valid loss %.4f (best %.4f)", epoch, time.time() - t0, valid, best)
            if valid < best:
                params.exp_dir.mkdir(parents=True, exist_ok=True)
                torch.save(model.module.state_dict(), params.exp_dir / "best-valid-loss.pt")
        best = min(best, valid)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
