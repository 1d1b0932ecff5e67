import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn

from rollout_engine import RolloutEngine


class Actor(nn.Module):
    def __init__(self, vocab=96, d=32):
        super().__init__()
        self.emb, self.rnn, self.head = nn.Embedding(vocab, d), nn.GRU(d, d, batch_first=True), nn.Linear(d, vocab)

    def forward(self, ids, h=None):
        x, h = self.rnn(self.emb(ids), h)
        return self.head(x), h


def main():
    conf = dict(a.split("=", 1) for a in sys.argv[1:])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    actor = Actor()
    torch.manual_seed(rank)
    engine = RolloutEngine(rank, actor)
    opt = torch.optim.Adam(actor.parameters(), lr=3e-4)
    for step in range(1, int(conf["trainer.total_training_steps"]) + 1):
        t0 = time.time()
        responses = engine.generate(int(conf["rollout.n"]))
        gen = time.time() - t0
        rewards = torch.tensor([len(set(r)) / 96 for r in responses])
        stats = torch.stack([rewards.mean(), rewards.pow(2).mean()])
        dist.all_reduce(stats)
        mean = stats[0] / world
        opt.zero_grad()
        for r, rew in zip(responses, rewards):
            ids = torch.tensor(r[:200]).unsqueeze(0)
            logp = actor(ids)[0][:, :-1].log_softmax(-1).gather(-1, ids[:, 1:, None])
            (-(rew - mean) * logp.mean() / len(responses)).backward()
        flat = torch.cat([p.grad.flatten() for p in actor.parameters()])
        dist.all_reduce(flat)
        off = 0
        for p in actor.parameters():
            p.grad.copy_(flat[off:off + p.numel()].view_as(p) / world)
            off += p.numel()
        opt.step()
        print(f"step:{step} - critic/rewards/mean:{mean.item():.3f} - timing_s/gen:{gen:.2f} - "
              f"response_length/max:{max(map(len, responses))}", flush=True)


if __name__ == "__main__":
    main()
