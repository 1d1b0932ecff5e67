import argparse
import logging
import os
import subprocess
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from stream import ShardStream

log = logging.getLogger("main")


class Classifier(nn.Module):
    def __init__(self, dim=112, depth=2):
        super().__init__()
        self.emb = nn.Embedding(300, dim)
        self.pos = nn.Embedding(40, dim)
        self.enc = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, 4, 224, dropout=0.1, batch_first=True) for _ in range(depth))
        self.head = nn.Linear(dim, 7)

    def forward(self, tok, mask):
        x = self.emb(tok) + self.pos(torch.arange(tok.shape[1]))
        for layer in self.enc:
            x = layer(x, src_key_padding_mask=mask)
        keep = (~mask).float().unsqueeze(-1)
        return self.head((x * keep).sum(1) / keep.sum(1))


@torch.no_grad()
def validate(model, batches):
    model.eval()
    hit = torch.zeros(2)
    for tok, mask, y in batches:
        hit[0] += (model(tok, mask).argmax(1) == y).sum()
        hit[1] += len(y)
    dist.all_reduce(hit)
    model.train()
    return (hit[0] / hit[1]).item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--passes", type=int, default=100)
    p.add_argument("--batch", type=int, default=24)
    p.add_argument("--val-every", type=int, default=4)
    p.add_argument("--ahead", type=int, default=4)
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s r{rank} %(message)s")
    folder = os.environ["SHARD_DIR"]

    helper = None
    if rank == 0:
        here = os.path.dirname(os.path.abspath(__file__))
        helper = subprocess.Popen([sys.executable, os.path.join(here, "fetch.py"), folder, str(args.ahead)])

    torch.manual_seed(0)
    model = Classifier()
    ddp = DDP(model)
    opt = torch.optim.AdamW(ddp.parameters(), lr=5e-4)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 100))
    torch.manual_seed(rank)
    stream = ShardStream(folder, rank, world, args.batch)
    held_out, step = None, 0

    for index, data in stream.shards():
        if index >= args.passes:
            break
        if held_out is None:
            held_out = list(stream.batches(data))
            continue
        t0, seen = time.time(), 0
        for tok, mask, y in stream.batches(data):
            loss = nn.functional.cross_entropy(ddp(tok, mask), y)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(ddp.parameters(), 1.0)
            opt.step()
            sched.step()
            step += 1
            seen += len(y)
        dist.barrier()
        if rank == 0:
            stream.release(index)
            log.info("shard %d step %d loss %.3f %.0f samples/s", index, step, loss.item(),
                     seen * world / (time.time() - t0))
            if index % 8 == 0:
                torch.save(model.state_dict(), os.path.join(folder, "model.pt"))
        if index % args.val_every == 0:
            acc = validate(model, held_out)
            if rank == 0:
                log.info("validation accuracy %.3f", acc)

    if helper is not None:
        helper.terminate()
        helper.wait()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
