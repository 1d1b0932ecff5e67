import os
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F

from model import Decoder
from monitor import RunMonitor
from parallel import apply_tp, build_mesh, sync_grads

STEPS, TP, HIST_EVERY = 100000, 2, 120


def batches(dp_rank, bs=4, seq=64, vocab=256):
    g = torch.Generator().manual_seed(1000 + dp_rank)
    while True:
        start = torch.randint(0, vocab, (bs, 1), generator=g)
        yield (start + torch.arange(seq + 1)[None] * 3) % vocab


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(hours=2))
    mesh = build_mesh(TP)
    torch.manual_seed(7)
    model = apply_tp(Decoder(), mesh["tp"])
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 50))
    mon = RunMonitor(dist.get_rank(), os.path.join(tempfile.mkdtemp(prefix="run-"), "weights.jsonl"))
    data = batches(mesh["dp"].get_local_rank())
    for step in range(1, STEPS + 1):
        seq = next(data)
        logits = model(seq[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), seq[:, 1:].flatten())
        loss.backward()
        sync_grads(model, mesh["dp"])
        opt.step()
        opt.zero_grad()
        sched.step()
        if step % 20 == 0:
            mon.scalars(step, loss.item(), sched.get_last_lr()[0])
        if step % HIST_EVERY == 0:
            mon.weights(step, model)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
