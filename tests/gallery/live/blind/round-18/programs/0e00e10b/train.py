import os
import signal
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from sampler import token_batches
from uploader import SpoolUploader

VOCAB, DIM, PAD = 800, 128, 0
stop_requested = False


def on_term(signum, frame):
    global stop_requested
    stop_requested = True


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM, padding_idx=PAD)
        layer = nn.TransformerEncoderLayer(DIM, 4, 3 * DIM, 0.1, batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(DIM, VOCAB)

    def forward(self, ids):
        return self.out(self.enc(self.embed(ids)))


def make_batch(rows, length, gen):
    ids = torch.randint(1, VOCAB, (rows, length), generator=gen)
    return ids, ids.flip(1)


def any_rank(flag):
    t = torch.tensor([float(flag)])
    dist.all_reduce(t, op=dist.ReduceOp.MAX)
    return t.item() > 0


@torch.no_grad()
def validate(model, rank):
    model.eval()
    gen = torch.Generator().manual_seed(50 + rank)
    stats = torch.zeros(2)
    for i in range(15):
        ids, tgt = make_batch(12, 40, gen)
        pred = model.module(ids).argmax(-1)
        stats += torch.tensor([(pred == tgt).sum().item(), tgt.numel()])
    dist.all_reduce(stats)
    model.train()
    return (stats[0] / stats[1]).item()


def main():
    torch.set_num_threads(1)
    signal.signal(signal.SIGTERM, on_term)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(Tagger())
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4)
    work = os.environ["WORK_DIR"]
    uploader = SpoolUploader(os.path.join(work, "spool"), os.path.join(work, "archive")) if rank == 0 else None
    gen = torch.Generator().manual_seed(77 + rank)
    step, history, epoch, t0, stopping = 0, [], 0, time.time(), False
    while epoch < 400 and not stopping:
        for rows, length in token_batches(rank, world, epoch):
            ids, tgt = make_batch(rows, length, gen)
            loss = F.cross_entropy(model(ids).flatten(0, 1), tgt.flatten())
            value = loss.item()
            mean = sum(history) / len(history) if history else value
            spike = value > 1.5 * mean or value != value
            if not spike:
                history = (history + [value])[-50:]
            skip = any_rank(spike)
            loss.backward()
            if not skip:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
            opt.zero_grad()
            step += 1
            if rank == 0 and step % 25 == 0:
                print(f"epoch {epoch} step {step} loss {value:.3f} {(time.time() - t0) / 25 * 1e3:.0f} ms", flush=True)
                t0 = time.time()
            if step % 120 == 0:
                acc = validate(model, rank)
                if rank == 0:
                    tmp = os.path.join(work, "spool", f"{step}.tmp")
                    torch.save(model.module.state_dict(), tmp)
                    os.replace(tmp, tmp[:-4] + ".pt")
                    print(f"step {step} accuracy {acc:.4f}", flush=True)
                dist.barrier()
            if any_rank(stop_requested):
                stopping = True
                break
        epoch += 1
    if uploader:
        uploader.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
