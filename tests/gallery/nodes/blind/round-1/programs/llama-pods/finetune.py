import argparse
import os
import pathlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

CHECKPOINT = pathlib.Path("checkpoints/last.pt")


class Decoder(nn.Module):
    def __init__(self, vocab=800, width=48):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 4, 96, batch_first=True) for _ in range(2))
        self.head = nn.Linear(width, vocab)

    def forward(self, tokens):
        x = self.embed(tokens)
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        for layer in self.layers:
            x = layer(x, src_mask=mask)
        return self.head(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=2e-5)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT")
    print(f"rank {rank} of {dist.get_world_size()} attempt {attempt}", flush=True)
    model = Decoder()
    first = 0
    if CHECKPOINT.exists():
        state = torch.load(CHECKPOINT)
        model.load_state_dict(state["model"])
        first = state["step"]
    model = DDP(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for step in range(first, 100_000):
        tokens = torch.randint(800, (4, 33))
        loss = nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 50 == 0:
            CHECKPOINT.parent.mkdir(exist_ok=True)
            torch.save({"model": model.module.state_dict(), "step": step}, CHECKPOINT)
            print(f"step {step} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
