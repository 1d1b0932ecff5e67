import argparse
import logging
import os
import tempfile
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from data import TagDataset, collate
from tagger import TagEncoder

log = logging.getLogger("tagger")


class Trainer:
    def __init__(self, args):
        self.args = args
        self.rank = dist.get_rank()
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        torch.manual_seed(0)
        self.model = TagEncoder()
        for layer in self.model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(self.model, mesh=mesh)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=args.lr)
        self.ckpt_group = dist.new_group(backend="gloo")
        self.step = 0

        data = TagDataset(args.corpus)
        self.sampler = DistributedSampler(data, seed=args.seed)
        self.loader = DataLoader(data, args.batch_size, sampler=self.sampler, collate_fn=collate, drop_last=True)

    def save(self, name):
        target = os.path.join(self.args.workdir, name)
        model_sd, opt_sd = get_state_dict(self.model, self.opt)
        dcp.save({"model": model_sd, "optim": opt_sd, "step": self.step},
                 checkpoint_id=target, process_group=self.ckpt_group)
        if self.rank == 0:
            log.info("saved %s", target)

    def fit(self):
        try:
            for epoch in range(self.args.epochs):
                self.sampler.set_epoch(epoch)
                self.train_epoch(epoch)
                self.save(f"epoch-{epoch % 2}")
        except Exception as e:
            log.error("%s at step %d: %r, saving last state", type(e).__name__, self.step, e)
            self.save("last")
            raise

    def train_epoch(self, epoch):
        t0, total = time.time(), 0.0
        for ids, tags in self.loader:
            logp = self.model(ids)
            loss = torch.nn.functional.nll_loss(logp.flatten(0, 1), tags.flatten(), ignore_index=-100)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.step += 1
            total += loss.item()
            if self.rank == 0 and self.step % 5 == 0:
                log.info("epoch %d step %d loss %.3f (%.0f ms)", epoch, self.step, loss.item(),
                         1000 * (time.time() - t0) / 5)
                t0 = time.time()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--batch-size", type=int, default=8)
    p.add_argument("--lr", type=float, default=3e-4)
    p.add_argument("--seed", type=int, default=38)
    p.add_argument("--corpus", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus.jsonl"))
    p.add_argument("--workdir", default=None)
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s rank{dist.get_rank()} %(levelname)s %(message)s")
    box = [args.workdir or (tempfile.mkdtemp(prefix="tagger-") if dist.get_rank() == 0 else None)]
    dist.broadcast_object_list(box, src=0)
    args.workdir = box[0]
    Trainer(args).fit()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
