import argparse
import datetime
import os
import tempfile
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from checkpointing import Checkpointer
from corpus import batch, write_manifest


class TinyLM(nn.Module):
    def __init__(self, vocab=1000, dim=48, layers=2):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 2 * dim, batch_first=True, dropout=0.0)
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.size(1))
        return self.head(self.body(self.emb(ids), mask=mask, is_causal=True))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=1000)
    ap.add_argument("--save-every-seconds", type=float, default=600)
    ap.add_argument("--lr", type=float, default=1e-3)
    args = ap.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(hours=1))
    rank = dist.get_rank()
    box = [tempfile.mkdtemp(prefix="pretrain-") if rank == 0 else None]
    dist.broadcast_object_list(box, src=0)
    run_dir = box[0]
    save_group = dist.new_group(backend="gloo")
    torch.manual_seed(1234)

    dist.barrier()
    if rank == 0:
        write_manifest(run_dir, args)
    checkpointer = Checkpointer(run_dir, save_group, args.save_every_seconds)
    model = TinyLM()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    model = DDP(model)

    for step in range(args.steps):
        ids, target = batch(step, rank)
        loss = F.cross_entropy(model(ids).flatten(0, 1), target.flatten())
        time.sleep(0.2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        if checkpointer.due():
            path = checkpointer.save(step, model, optimizer)
            if rank == 0:
                print(f"saved {os.path.basename(path)}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
