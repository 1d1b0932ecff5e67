import argparse
import glob
import time

import torch
from datasets import load_dataset
from datasets.distributed import split_dataset_by_node
from lightning.fabric import Fabric
from torch import nn
from torch.utils.data import DataLoader

from tokenizer import VOCAB, MergeTokenizer, augmentations

SEQ = 96


class Encoder(nn.Module):
    def __init__(self, dim=96):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim, padding_idx=0)
        self.conv = nn.Conv1d(dim, dim, 5, padding=2)
        self.head = nn.Sequential(nn.Linear(dim, 128), nn.GELU(), nn.Linear(128, 64))

    def forward(self, ids):
        h = torch.relu(self.conv(self.emb(ids).transpose(1, 2)))
        return nn.functional.normalize(self.head(h.mean(2)), dim=1)


def make_views(row, tokenizer):
    views = augmentations(tokenizer, row["text"])
    return {f"view{k}": (v + [0] * SEQ)[:SEQ] for k, v in enumerate(views)}


def build_stream(corpus, rank, world, batch_size):
    files = sorted(glob.glob(f"{corpus}/part-*.jsonl"))
    stream = load_dataset("json", data_files=files, split="train", streaming=True)
    tokenizer = MergeTokenizer()
    stream = stream.map(make_views, fn_kwargs={"tokenizer": tokenizer}, remove_columns=["text"])
    stream = split_dataset_by_node(stream, rank=rank, world_size=world)
    stream = stream.with_format("torch")
    return stream, DataLoader(stream, batch_size=batch_size, drop_last=True)


def contrastive(a, b, temp=0.1):
    logits = a @ b.T / temp
    return nn.functional.cross_entropy(logits, torch.arange(len(a)))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--corpus", required=True)
    p.add_argument("--devices", type=int, default=2)
    p.add_argument("--epochs", type=int, default=1000)
    p.add_argument("--batch-size", type=int, default=8)
    args = p.parse_args()

    torch.set_num_threads(1)
    fabric = Fabric(accelerator="cpu", devices=args.devices, strategy="ddp")
    fabric.launch()
    fabric.seed_everything(0)
    model = Encoder()
    model, opt = fabric.setup(model, torch.optim.AdamW(model.parameters(), 1e-3))
    stream, loader = build_stream(args.corpus, fabric.global_rank, fabric.world_size, args.batch_size)

    step, t0 = 0, time.time()
    for epoch in range(args.epochs):
        stream.set_epoch(epoch)
        for batch in loader:
            a, b = model(batch["view0"]), model(batch["view1"])
            loss = contrastive(a, b)
            opt.zero_grad()
            fabric.backward(loss)
            opt.step()
            step += 1
            if step % 5 == 0:
                fabric.print(f"epoch {epoch} step {step} loss {loss.item():.3f} {(time.time() - t0) / 5:.2f} s/step", flush=True)
                t0 = time.time()
        fabric.barrier()
        fabric.print(f"epoch {epoch} done after {step} steps", flush=True)


if __name__ == "__main__":
    main()
