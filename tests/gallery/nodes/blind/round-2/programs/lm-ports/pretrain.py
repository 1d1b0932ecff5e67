import argparse
import logging
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("pretrain")


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.norm(x))


class LanguageModel(nn.Module):
    def __init__(self, words: int = 512, width: int = 64, depth: int = 2) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(depth)))
        self.head = nn.Linear(width, words)

    def forward(self, tokens):
        return self.head(self.blocks(self.embed(tokens)))


def main() -> None:
    words = argparse.ArgumentParser()
    words.add_argument("--context", type=int, default=32)
    context = words.parse_args().context
    log.info("starting rank %s of %s", os.environ["RANK"], os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    log.info("group is up")
    model = DistributedDataParallel(LanguageModel())
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(100_000):
        tokens = torch.randint(0, 512, (4, context + 1))
        loss = nn.functional.cross_entropy(
            model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()
        )
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 50 == 0 and dist.get_rank() == 0:
            log.info("step %d loss %.3f", step, loss.item())


if __name__ == "__main__":
    main()
