"""A small language model; one rank sums its token count once more than the others, for its own log line."""

import argparse
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


class TinyLanguageModel(torch.nn.Module):
    def __init__(self, vocabulary: int = 97, width: int = 32) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, width)
        self.mixer = torch.nn.GRU(width, width, batch_first=True)
        self.head = torch.nn.Linear(width, vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        mixed, _ = self.mixer(self.embedding(tokens))
        return self.head(mixed)


def report(step: int, tokens_seen: int, verbose_rank: int) -> None:
    rank = dist.get_rank()
    if rank == verbose_rank:
        total = torch.tensor([float(tokens_seen)])
        dist.all_reduce(total)
        print(f"[{rank}] step={step} tokens={int(total)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--culprit", type=int, default=1)
    parser.add_argument("--when", type=int, default=8)
    parser.add_argument("--steps", type=int, default=100_000)
    args = parser.parse_args()
    dist.init_process_group(backend="gloo", init_method="env://")
    model = DistributedDataParallel(TinyLanguageModel())
    optimizer = torch.optim.Adam(model.parameters())
    tokens_seen = 0
    for step in range(args.steps):
        batch = torch.randint(0, 97, (4, 17))
        logits = model(batch[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        tokens_seen += batch.numel()
        if step == args.when:
            report(step, tokens_seen, args.culprit)
        time.sleep(0.01)


if __name__ == "__main__":
    main()
