"""CTC training on log-mel features, iterable manifest per rank."""
import argparse
import time
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset


@dataclass
class Config:
    n_mels: int = 40
    hidden: int = 96
    vocab: int = 30
    utterances: int = 1210
    batch_size: int = 8
    max_frames: int = 60
    lr: float = 2e-3
    epochs: int = 50


def manifest(cfg):
    g = torch.Generator().manual_seed(42)
    frames = torch.randint(16, 90, (cfg.utterances,), generator=g).tolist()
    return [(i, n) for i, n in enumerate(frames)]


class Utterances(IterableDataset):
    def __init__(self, cfg, rank, world):
        self.cfg = cfg
        self.items = [it for k, it in enumerate(manifest(cfg)) if k % world == rank]

    def __iter__(self):
        for uid, n in self.items:
            if n > self.cfg.max_frames:
                continue
            g = torch.Generator().manual_seed(uid)
            feats = torch.randn(n, self.cfg.n_mels, generator=g)
            target = torch.randint(1, self.cfg.vocab, (max(1, n // 12),), generator=g)
            yield feats, target


def collate(batch):
    feats = nn.utils.rnn.pad_sequence([f for f, _ in batch], batch_first=True)
    flen = torch.tensor([len(f) for f, _ in batch])
    tgt = torch.cat([t for _, t in batch])
    tlen = torch.tensor([len(t) for _, t in batch])
    return feats, flen, tgt, tlen


class Encoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.conv = nn.Conv1d(cfg.n_mels, cfg.hidden, 3, padding=1)
        self.rnn = nn.GRU(cfg.hidden, cfg.hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * cfg.hidden, cfg.vocab)

    def forward(self, x):
        x = torch.relu(self.conv(x.transpose(1, 2))).transpose(1, 2)
        return self.out(self.rnn(x)[0]).log_softmax(-1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=Config.epochs)
    args = ap.parse_args()
    cfg = Config(epochs=args.epochs)

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    loader = DataLoader(Utterances(cfg, rank, world), batch_size=cfg.batch_size, collate_fn=collate)
    model = DDP(Encoder(cfg))
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    ctc = nn.CTCLoss(zero_infinity=True)

    for epoch in range(cfg.epochs):
        t0, total, frames = time.time(), 0.0, 0
        for i, (x, xlen, y, ylen) in enumerate(loader):
            loss = ctc(model(x).transpose(0, 1), y, xlen, ylen)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
            total += loss.item()
            frames += int(xlen.sum())
            if rank == 0 and i % 10 == 0:
                print(f"epoch {epoch} batch {i} ctc {loss.item():.3f}", flush=True)
        report = [None] * world
        dist.all_gather_object(report, {"rank": rank, "frames": frames, "ctc": total / (i + 1)})
        if rank == 0:
            print(f"epoch {epoch} {time.time() - t0:.1f}s {report}", flush=True)
            torch.save(model.module.state_dict(), "asr.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
