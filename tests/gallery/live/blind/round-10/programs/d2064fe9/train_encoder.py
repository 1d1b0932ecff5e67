import logging
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

import corpus

log = logging.getLogger("encoder")


class Encoder(nn.Module):
    def __init__(self, vocab=512, dim=64, depth=2, classes=8, max_len=512):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.pos = nn.Embedding(max_len, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 4 * dim, dropout=0.1, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.cls = nn.Linear(dim, classes)

    def forward(self, ids):
        x = self.emb(ids) + self.pos(torch.arange(ids.shape[1]))
        return self.cls(self.enc(x, src_key_padding_mask=ids == 0)[:, 0])


def collate(rows):
    t = max(r["length"] for r in rows)
    ids = torch.zeros(len(rows), t, dtype=torch.long)
    for i, r in enumerate(rows):
        ids[i, : r["length"]] = torch.tensor(r["input_ids"])
    return ids, torch.tensor([r["label"] for r in rows])


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO if rank == 0 else logging.WARNING, format="%(asctime)s %(message)s")
    torch.manual_seed(5 + rank)

    ds = corpus.load(rank, world)
    loader = DataLoader(ds, 8, shuffle=True, collate_fn=collate, drop_last=True)
    log.info("rank 0 has %d documents, %d batches", len(ds), len(loader))
    model = DDP(Encoder())
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4)
    sched = torch.optim.lr_scheduler.LinearLR(opt, 0.1, total_iters=200)

    step, t0, seen = 0, time.time(), 0
    for epoch in range(400):
        for ids, y in loader:
            loss = F.cross_entropy(model(ids), y)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            step += 1
            seen += y.numel() * world
            if step % 50 == 0:
                dt = time.time() - t0
                log.info("epoch %d step %d loss %.3f %.0f ms/step %.0f docs/s", epoch, step, loss.item(), dt * 20, seen / dt)
                t0, seen = time.time(), 0
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
