import argparse
import json
import logging
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from .checkpoint import CheckpointManager
from .data import TokenStream

logging.basicConfig(level=logging.INFO, format="[titan] %(asctime)s - root - %(levelname)s - %(message)s")
logger = logging.getLogger()


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        torch.set_num_threads(1)
        dist.init_process_group("gloo")
        self.rank = dist.get_rank()
        self.model = DDP(nn.Sequential(nn.Embedding(cfg["vocab"], cfg["dim"]), nn.Linear(cfg["dim"], cfg["dim"]),
                                       nn.SiLU(), nn.Linear(cfg["dim"], cfg["vocab"])))
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=3e-4)
        self.data = TokenStream(self.rank, cfg["vocab"], cfg["seq_len"])
        self.ckpt = CheckpointManager("outputs/checkpoint")

    def train_step(self):
        x, y = self.data.next(self.cfg["batch"])
        loss = nn.functional.cross_entropy(self.model(x).flatten(0, 1), y.flatten())
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()

    def train(self):
        for step in range(1, self.cfg["steps"] + 1):
            loss = self.train_step()
            time.sleep(0.08)
            if step % 10 == 0:
                logger.info("step: %3d  loss: %7.4f", step, loss)
            if step % self.cfg["ckpt_every"] == 0:
                self.ckpt.save(step, self.model.module)

    def close(self):
        self.ckpt.close()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--config", required=True)
    cfg = json.load(open(p.parse_args().config))
    trainer = None
    try:
        trainer = Trainer(cfg)
        trainer.train()
    finally:
        if trainer:
            trainer.close()
        if dist.is_initialized():
            dist.destroy_process_group()
            logger.info("Process group destroyed.")


if __name__ == "__main__":
    main()
