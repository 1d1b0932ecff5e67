import argparse
import copy
import logging
import os
import queue

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from rollout import EOS, VOCAB, RolloutQueueDataset, RolloutWorker

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
log = logging.getLogger("train")


class TinyLM(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, VOCAB)

    def forward(self, ids):
        h, _ = self.rnn(self.emb(ids))
        return self.head(h)


def collate(item):
    seqs = [item["prompt"] + c + [EOS] for c in item["completions"]]
    width = max(map(len, seqs))
    ids = torch.full((len(seqs), width), EOS)
    mask = torch.zeros(len(seqs), width)
    for i, s in enumerate(seqs):
        ids[i, : len(s)] = torch.tensor(s)
        mask[i, len(item["prompt"]): len(s)] = 1
    return {"ids": ids, "mask": mask, "adv": item["adv"]}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--max-steps", type=int, default=1000)
    p.add_argument("--sync-every", type=int, default=8)
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(5)
    model = TinyLM()
    ddp = DDP(model)
    opt = torch.optim.AdamW(ddp.parameters(), lr=5e-3)

    groups = None
    if rank == 0:
        q = queue.Queue(maxsize=16)
        worker = RolloutWorker(copy.deepcopy(model).eval(), q, seed=7)
        groups = iter(RolloutQueueDataset(q, lambda: worker.version))
        worker.start()

    for step in range(args.max_steps):
        shards = [None] * world
        if rank == 0:
            items = [next(groups) for _ in range(world)]
            shards = [collate(it) for it in items]
            reward = sum(it["reward"] for it in items) / world
        out = [None]
        dist.scatter_object_list(out, shards, src=0)
        batch = out[0]
        logp = F.log_softmax(ddp(batch["ids"][:, :-1]), -1)
        tok = logp.gather(-1, batch["ids"][:, 1:].unsqueeze(-1)).squeeze(-1)
        loss = -(tok * batch["mask"][:, 1:] * batch["adv"][:, None]).sum() / batch["mask"].sum().clamp(min=1)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(ddp.parameters(), 1.0)
        opt.step()
        if rank == 0:
            if (step + 1) % args.sync_every == 0:
                worker.policy.load_state_dict(model.state_dict())
                worker.version = step + 1
            if step % 20 == 0:
                log.info("step %d loss %.4f reward %.3f queue %d", step, loss.item(), reward, q.qsize())

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
