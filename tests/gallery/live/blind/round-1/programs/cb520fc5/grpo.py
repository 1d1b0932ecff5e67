import argparse
import random
import threading
import time

import torch
import torch.distributed as dist
from torch import nn

from rewards import compute_score

VOCAB = list("0123456789,.x= ") + ["\\boxed{", "}", "and ", "hours", "<eos>"]


class Policy(nn.Module):
    def __init__(self, dim=96):
        super().__init__()
        self.emb = nn.Embedding(len(VOCAB), dim)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, len(VOCAB))

    def forward(self, ids, h=None):
        y, h = self.gru(self.emb(ids), h)
        return self.head(y), h


class Heartbeat(threading.Thread):
    def __init__(self, path, every=2.0):
        super().__init__(daemon=True)
        self.path, self.every = path, every

    def run(self):
        while True:
            with open(self.path, "w") as f:
                f.write(f"{time.time():.3f}\n")
            time.sleep(self.every)


def sample(policy, prompts, max_new):
    ids, h, out = prompts, None, []
    for _ in range(max_new):
        logits, h = policy(ids, h)
        ids = torch.distributions.Categorical(logits=logits[:, -1]).sample()[:, None]
        out.append(ids)
    return torch.cat(out, dim=1)


class PromptPool:
    def __init__(self, rank, seed=0):
        self.rng = random.Random(seed * 100 + rank)
        self.n = 0

    def take(self, k):
        items = []
        for _ in range(k):
            self.n += 1
            a, b = self.rng.randint(1, 99), self.rng.randint(1, 99)
            items.append({"prompt": f"{a},{b}=", "target": f"{a + b}", "draft": None})
            if self.rng.random() < 0.02:
                digits = [str(self.rng.randint(0, 9)) for _ in range(self.rng.randint(45, 70))]
                items[-1]["draft"] = "\\boxed{" + " ".join(digits) + " x}"
        return items


def average_gradients(model, world):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad.div_(world)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--iters", type=int, default=5000)
    ap.add_argument("--prompts", type=int, default=4)
    ap.add_argument("--group", type=int, default=4)
    ap.add_argument("--max-new", type=int, default=24)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    policy = Policy()
    opt = torch.optim.Adam(policy.parameters(), lr=1e-3)
    torch.manual_seed(50 + rank)
    Heartbeat(f"heartbeat.{rank}").start()
    pool = PromptPool(rank, seed=16)
    table = {c: i for i, c in enumerate(VOCAB)}

    for it in range(args.iters):
        tasks = pool.take(args.prompts)
        loss, scores = 0.0, []
        for task in tasks:
            prompt = torch.tensor([[table[c] for c in task["prompt"]]] * args.group)
            with torch.no_grad():
                seqs = sample(policy, prompt, args.max_new)
            texts = ["".join(VOCAB[t] for t in row) for row in seqs.tolist()]
            if task["draft"] is not None and it > 20:
                texts[0] = task["draft"]
            r = torch.tensor([compute_score(t, task["target"]) for t in texts])
            scores.append(r.mean().item())
            adv = (r - r.mean()) / (r.std() + 1e-4)
            logits, _ = policy(torch.cat([prompt, seqs[:, :-1]], dim=1))
            logp = logits[:, prompt.shape[1] - 1 :].log_softmax(-1).gather(-1, seqs[..., None]).squeeze(-1)
            loss = loss - (adv[:, None] * logp).mean()
        opt.zero_grad()
        loss.backward()
        average_gradients(policy, world)
        opt.step()
        if rank == 0 and it % 10 == 0:
            print(f"iter {it} reward {sum(scores) / len(scores):.3f} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
