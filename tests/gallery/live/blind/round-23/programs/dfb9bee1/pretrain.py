import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP

import telemetry

VOCAB, SEQ, DIM = 256, 32, 48


class ByteLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Parameter(torch.zeros(SEQ, DIM))
        self.block = nn.TransformerEncoderLayer(DIM, 4, 96, dropout=0.0, batch_first=True)
        self.out = nn.Linear(DIM, VOCAB)

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.size(1))
        return self.out(self.block(self.tok(ids) + self.pos[: ids.size(1)], src_mask=mask))


def batches(rank, size=8):
    gen = torch.Generator().manual_seed(100 + rank)
    while True:
        start = torch.randint(0, VOCAB, (size, 1), generator=gen)
        yield (start + torch.arange(SEQ + 1) * 3) % VOCAB


def main():
    dist.init_process_group("gloo", init_method="env://", timeout=timedelta(minutes=45))
    rank = dist.get_rank()
    torch.manual_seed(1)
    model = DDP(ByteLM())
    opt = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW, lr=1e-3)

    log = None
    if rank == 0:
        log = telemetry.open_buffer("bytelm")
        telemetry.start_reporter(log, period=1.5)

    for step, ids in enumerate(batches(rank)):
        t0 = time.perf_counter()
        logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, VOCAB), ids[:, 1:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        time.sleep(0.07)
        if log is not None:
            log.append({"step": step, "loss": loss.item(), "grad_norm": norm.item(),
                        "step_time": time.perf_counter() - t0})
            if step % 25 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)
        if step >= 20000:
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
