import argparse
import logging
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

import hub

log = logging.getLogger("ner")
TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG"]


class Tagger(nn.Module):
    def __init__(self, vocab=5000, dim=96):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 4 * dim, dropout=0.1, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(dim, len(TAGS))

    def forward(self, ids):
        return self.head(self.enc(self.emb(ids)))


def fetch_weights(repo, cache):
    box = [None]
    if dist.get_rank() == 0:
        box[0] = hub.snapshot(repo, cache)
    dist.broadcast_object_list(box, src=0)
    return os.path.join(box[0], "model.pt")


def synthetic_sentences(n, length, seed):
    g = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, 5000, (n, length), generator=g)
    return ids, ids % len(TAGS)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--model", default="acme/tagger-base")
    ap.add_argument("--cache", default="hub-cache")
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--bs", type=int, default=16)
    ap.add_argument("--lr", type=float, default=5e-5)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO, format=f"[{rank}] %(asctime)s %(message)s")
    log.info("loading %s", args.model)
    path = fetch_weights(args.model, args.cache)
    torch.manual_seed(0)
    net = Tagger()
    net.load_state_dict(torch.load(path))
    model = DDP(net)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    ids, tags = synthetic_sentences(4000, 24, seed=rank)

    for epoch in range(args.epochs):
        for i in range(0, len(ids), args.bs):
            logits = model(ids[i : i + args.bs])
            loss = F.cross_entropy(logits.flatten(0, 1), tags[i : i + args.bs].flatten())
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
        if rank == 0:
            log.info("epoch %d loss %.4f", epoch, loss.item())
            torch.save(net.state_dict(), "ner.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
