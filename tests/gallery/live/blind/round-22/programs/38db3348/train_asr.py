import argparse
import contextlib
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from audio_data import MELS, VOCAB, build_loader


class CTCModel(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.conv = nn.Conv1d(MELS, dim, 3, padding=1)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.proj = nn.Linear(dim, VOCAB)

    def forward(self, feats):
        h = torch.relu(self.conv(feats.transpose(1, 2))).transpose(1, 2)
        h, _ = self.rnn(h)
        return self.proj(h).log_softmax(-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--grad_accum", type=int, default=2)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(CTCModel())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    ctc = nn.CTCLoss(zero_infinity=True)
    update, started = 0, time.time()

    for micro, batch in enumerate(build_loader(rank, world), start=1):
        boundary = micro % args.grad_accum == 0
        with contextlib.nullcontext() if boundary else model.no_sync():
            logp = model(batch["features"])
            n, t = logp.shape[:2]
            lengths = torch.full((n,), batch["labels"].shape[1])
            loss = ctc(logp.transpose(0, 1), batch["labels"], torch.full((n,), t), lengths) / args.grad_accum
            loss.backward()
        time.sleep(0.05)
        if not boundary:
            continue
        optimizer.step()
        optimizer.zero_grad()
        update += 1
        if rank == 0 and update % 5 == 0:
            rate = update / (time.time() - started)
            print(f"update {update} ctc {loss.item() * args.grad_accum:.3f} {rate:.2f} it/s", flush=True)


if __name__ == "__main__":
    main()
