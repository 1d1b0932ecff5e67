"""Plain DDP over texts of different length, in batches of texts that are about as long as each other."""

import argparse
import random

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

BUCKETS_FROM = 512  # below it padding costs less than buckets do


class Texts(Dataset):
    def __init__(self, rows):
        made = random.Random(0)
        self.lengths = [made.randint(4, 60) for _ in range(rows)]

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, index):
        length = self.lengths[index]
        tokens = torch.zeros(64, dtype=torch.long)
        tokens[:length] = torch.arange(length) % 50 + 1
        return tokens, length % 2


class BucketSampler:
    """Batches of like length. Each rank takes the batches of its own residue."""

    def __init__(self, lengths, batch_size, rank, world):
        self.lengths, self.batch_size, self.rank, self.world = lengths, batch_size, rank, world
        self.batches = self._batches()

    def _batches(self):
        by_length = {}
        for index, length in enumerate(self.lengths):
            by_length.setdefault(length // 16, []).append(index)
        batches = []
        for _, members in sorted(by_length.items()):
            batches += [members[at : at + self.batch_size] for at in range(0, len(members), self.batch_size)]
        return batches[self.rank :: self.world]

    def __iter__(self):
        return iter(self.batches)

    def __len__(self):
        return len(self.batches)


def loader_for(texts, args, rank, world):
    if len(texts) < BUCKETS_FROM or args.sampler == "plain":
        return DataLoader(texts, batch_size=args.batch_size, sampler=DistributedSampler(texts, num_replicas=world, rank=rank))
    return DataLoader(texts, batch_sampler=BucketSampler(texts.lengths, args.batch_size, rank, world))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max_train_samples", type=int, default=20_000)
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--sampler", default="buckets")
    args = parser.parse_args()
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    texts = Texts(args.max_train_samples)
    loader = loader_for(texts, args, rank, world)
    model = DDP(torch.nn.Sequential(torch.nn.EmbeddingBag(64, 16), torch.nn.Linear(16, 2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, (tokens, labels) in enumerate(loader):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(tokens), labels)
        loss.backward()
        optimizer.step()
        if step % 10 == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.3f}", flush=True)
    dist.barrier()
    if rank == 0:
        print("epoch done", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
