import argparse
import datetime
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from utterances import ChunkedBatchSampler, Utterances, pad

WARMUP_EPOCHS = 2


class Decoder(nn.Module):
    def __init__(self, mels=20, dim=32):
        super().__init__()
        self.cell = nn.GRUCell(mels, dim)
        self.out = nn.Linear(dim, mels)
        self.dim = dim

    def forward(self, mel):
        h = mel.new_zeros(mel.size(0), self.dim)
        preds = []
        for t in range(mel.size(1) - 1):
            h = self.cell(mel[:, t], h)
            preds.append(self.out(h))
            time.sleep(0.004)
        return torch.stack(preds, 1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=100)
    ap.add_argument("--batch-size", type=int, default=4)
    args = ap.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(minutes=30))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(3)
    model = DDP(Decoder())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    data = Utterances()
    step = 0
    for epoch in range(args.epochs):
        sampler = ChunkedBatchSampler(data, rank, world, args.batch_size, max_frames=100 if epoch < WARMUP_EPOCHS else None)
        sampler.set_epoch(epoch)
        loader = DataLoader(data, batch_sampler=sampler, collate_fn=pad)
        start = time.time()
        for mel in loader:
            loss = (model(mel) - mel[:, 1:]).abs().mean()
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            step += 1
            if rank == 0 and step % 5 == 0:
                print(f"epoch {epoch} step {step} l1 {loss.item():.4f} {time.time() - start:.1f}s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
