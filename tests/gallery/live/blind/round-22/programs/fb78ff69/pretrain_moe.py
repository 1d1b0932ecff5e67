import argparse
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from corpus import VOCAB, Benchmark, TextStream
from expert_layer import ExpertParallelFFN


class MoELM(nn.Module):
    def __init__(self, ep_group, dim=32, layers=2):
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(VOCAB, dim)
        self.mix = nn.ModuleList(nn.GRU(dim, dim, batch_first=True) for _ in range(layers))
        self.ffn = nn.ModuleList(ExpertParallelFFN(dim, 64, ep_group) for _ in range(layers))
        self.head = nn.Linear(dim, VOCAB)

    def forward(self, ids):
        x = self.embed(ids)
        for mix, ffn in zip(self.mix, self.ffn):
            x = x + mix(x)[0]
            x = x + ffn(x)
        return self.head(x)

    def dense_parameters(self):
        return [p for n, p in self.named_parameters() if ".expert." not in n]


def sync_dense(model, dp_group):
    grads = [p.grad for p in model.dense_parameters()]
    flat = torch.cat([g.reshape(-1) for g in grads])
    dist.all_reduce(flat, group=dp_group)
    flat /= dist.get_world_size(dp_group)
    for g, piece in zip(grads, flat.split([g.numel() for g in grads])):
        g.copy_(piece.view_as(g))


@torch.no_grad()
def run_benchmark(model, bench, dp_group):
    model.eval()
    counts = torch.zeros(2)
    for questions, answers in bench.batches(dist.get_rank(dp_group), dist.get_world_size(dp_group)):
        logits = model(questions)[:, -1, :4]
        counts[0] += (logits.argmax(-1) == answers).sum()
        counts[1] += len(answers)
        time.sleep(0.1)
    dist.all_reduce(counts, group=dp_group)
    model.train()
    return (counts[0] / counts[1]).item()


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--steps", type=int, default=100000)
    args.add_argument("--eval-every", type=int, default=500)
    args = args.parse_args()

    dist.init_process_group("gloo", timeout=timedelta(hours=1))
    rank = dist.get_rank()
    dp_group = dist.new_group()
    ep_group = dist.new_group()
    model = MoELM(ep_group)
    optim = torch.optim.AdamW(model.parameters(), lr=1e-3)
    stream, bench = TextStream(rank), Benchmark()

    for step in range(1, args.steps + 1):
        ids = stream.next()
        time.sleep(0.12)
        logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        optim.zero_grad()
        loss.backward()
        sync_dense(model, dp_group)
        optim.step()
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        if step % args.eval_every == 0:
            score = run_benchmark(model, bench, dp_group)
            if rank == 0:
                print(f"step {step} benchmark accuracy {score:.3f}", flush=True)


if __name__ == "__main__":
    main()
