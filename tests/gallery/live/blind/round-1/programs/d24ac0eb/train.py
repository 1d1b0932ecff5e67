import argparse
import logging
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

import data

logger = logging.getLogger("sentiment")
VOCAB = {w: i + 1 for i, w in enumerate(data.WORDS)}
LABEL_ID = {name: i for i, name in enumerate(data.LABELS)}


class BagClassifier(nn.Module):
    def __init__(self, vocab, dim, classes):
        super().__init__()
        self.emb = nn.EmbeddingBag(vocab + 1, dim, mode="mean")
        self.mlp = nn.Sequential(nn.Linear(dim, 512), nn.ReLU(), nn.Dropout(0.1), nn.Linear(512, 512), nn.ReLU(),
                                 nn.Linear(512, classes))

    def forward(self, tokens, offsets):
        return self.mlp(self.emb(tokens, offsets))


def encode(records):
    tokens, offsets, labels = [], [], []
    for rec in records:
        offsets.append(len(tokens))
        tokens.extend(VOCAB[w] for w in rec["text"].split())
        labels.append(LABEL_ID[rec["label"]])
    return torch.tensor(tokens), torch.tensor(offsets), torch.tensor(labels)


def run_epoch(model, optim, records, batch_size, epoch):
    model.train()
    g = torch.Generator().manual_seed(epoch)
    order = torch.randperm(len(records), generator=g).tolist()
    losses = []
    for step in range(len(records) // batch_size):
        picked = [records[i] for i in order[step * batch_size : (step + 1) * batch_size]]
        try:
            tokens, offsets, labels = encode(picked)
            loss = nn.functional.cross_entropy(model(tokens, offsets), labels)
            optim.zero_grad(set_to_none=True)
            loss.backward()
            optim.step()
        except Exception as exc:
            logger.warning("epoch %d step %d: %r, moving on", epoch, step, exc)
            continue
        losses.append(loss.item())
        if step % 20 == 0:
            logger.info("epoch %d step %d loss %.4f", epoch, step, losses[-1])
    return sum(losses) / len(losses)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="reviews")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--dim", type=int, default=256)
    args = parser.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO if rank == 0 else logging.WARNING,
                        format=f"%(asctime)s [{rank}] %(levelname)s %(message)s")
    if rank == 0 and not os.path.isdir(args.data):
        data.build(args.data, shards=world, per_shard=1600)
    dist.barrier()
    records = data.read_shard(args.data, rank)

    torch.manual_seed(0)
    model = DDP(BagClassifier(len(VOCAB), args.dim, len(LABEL_ID)))
    optim = torch.optim.Adam(model.parameters(), lr=1e-3)

    for epoch in range(args.epochs):
        mean = run_epoch(model, optim, records, args.batch_size, epoch)
        dist.barrier()
        stats = [None] * world
        dist.all_gather_object(stats, mean)
        logger.info("epoch %d done, mean loss per rank %s", epoch, [round(s, 4) for s in stats])
        if rank == 0:
            torch.save(model.module.state_dict(), "last.pt")

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
