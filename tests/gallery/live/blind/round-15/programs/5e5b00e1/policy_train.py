import argparse
import gc
import logging
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from experience import Experience

BUFFER_OWNER = 1
log = logging.getLogger("policy")


class Policy(nn.Module):
    def __init__(self, vocab, dim=128):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.LSTM(dim, dim, num_layers=2, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids):
        return self.out(self.rnn(self.emb(ids))[0])


class Learner:
    def __init__(self, args):
        self.args, self.rank, self.world = args, dist.get_rank(), dist.get_world_size()
        torch.manual_seed(0)
        self.policy = DDP(Policy(args.vocab))
        self.frozen = Policy(args.vocab)
        self.opt = torch.optim.Adam(self.policy.parameters(), lr=1e-4)
        self.buffer = None
        if self.rank == BUFFER_OWNER:
            self.buffer = Experience(args.buffer, args.answer_len, args.vocab, seed=4)
            self.buffer.warm_up()
            log.info("experience buffer holds %d answers", len(self.buffer.rows))

    def minibatch(self):
        a = self.args
        ids, adv = torch.empty(a.batch, a.answer_len, dtype=torch.long), torch.empty(a.batch)
        ids_parts = adv_parts = None
        if self.buffer is not None:
            pairs = [self.buffer.sample(a.batch) for _ in range(self.world)]
            ids_parts, adv_parts = [p[0] for p in pairs], [p[1] for p in pairs]
        dist.scatter(ids, ids_parts, src=BUFFER_OWNER)
        dist.scatter(adv, adv_parts, src=BUFFER_OWNER)
        return ids, adv

    def old_logps(self, ids):
        with torch.no_grad():
            logp = F.log_softmax(self.frozen(ids[:, :-1]), -1).gather(-1, ids[:, 1:, None]).squeeze(-1)
        gc.collect()
        return logp

    def sync_weights(self):
        self.frozen.load_state_dict(self.policy.module.state_dict())
        gc.collect()

    def step(self):
        ids, adv = self.minibatch()
        old = self.old_logps(ids)
        logp = F.log_softmax(self.policy(ids[:, :-1]), -1).gather(-1, ids[:, 1:, None]).squeeze(-1)
        ratio = (logp - old).exp()
        loss = -torch.min(ratio * adv[:, None], ratio.clamp(0.8, 1.2) * adv[:, None]).mean()
        self.opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.policy.parameters(), 1.0)
        self.opt.step()
        self.sync_weights()
        if self.buffer is not None:
            self.buffer.add(int(ids[0, 0]), ids[0, :2].tolist(), [int(adv[0] > 0), 1])
        return loss.item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--buffer", type=int, default=100000)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--answer-len", type=int, default=24)
    p.add_argument("--vocab", type=int, default=512)
    p.add_argument("--steps", type=int, default=100000)
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s [{dist.get_rank()}] %(message)s")
    learner = Learner(args)
    t0 = time.time()
    for step in range(1, args.steps + 1):
        loss = learner.step()
        if step % 10 == 0 and learner.rank == 0:
            log.info("step %d loss %.5f, %.3f s per step", step, loss, (time.time() - t0) / 10)
            t0 = time.time()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
