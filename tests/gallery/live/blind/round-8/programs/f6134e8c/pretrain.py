import argparse
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from recorder import Recorder
from saver import BackgroundSaver


class Encoder(torch.nn.Module):
    def __init__(self, vocab=400, dim=64):
        super().__init__()
        self.emb = torch.nn.Embedding(vocab, dim)
        layer = torch.nn.TransformerEncoderLayer(dim, 4, 128, batch_first=True, dropout=0.0)
        self.body = torch.nn.TransformerEncoder(layer, 2)
        self.out = torch.nn.Linear(dim, vocab)

    def forward(self, x):
        return self.out(self.body(self.emb(x)))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", default="ckpt")
    ap.add_argument("--steps", type=int, default=200000)
    ap.add_argument("--save-every", type=int, default=60)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    model = DDP(Encoder())
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4)
    recorder = saver = None
    if rank == 0:
        recorder = Recorder("history.z")
        saver = BackgroundSaver(args.out, recorder)
    gen = torch.Generator().manual_seed(rank)
    t0 = time.time()
    for step in range(1, args.steps + 1):
        x = torch.randint(1, 400, (8, 32), generator=gen)
        masked = x.masked_fill(torch.rand(x.shape, generator=gen) < 0.15, 0)
        loss = torch.nn.functional.cross_entropy(model(masked).flatten(0, 1), x.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0:
            recorder.scalar(step, loss=loss.item())
            if step % 20 == 0:
                print(f"step {step} loss {loss.item():.4f} {step / (time.time() - t0):.1f} it/s", flush=True)
            if step % args.save_every == 0:
                saver.save(step, model.module)
    if saver:
        saver.wait()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
