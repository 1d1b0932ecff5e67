import torch.distributed as dist
from datasets import load_dataset
from parts import gather_all
from torch.utils.data import DataLoader


def main(model, optimizer):
    dist.init_process_group("gloo")
    rows = load_dataset("x", split="train").shard(dist.get_world_size(), dist.get_rank())
    loader = DataLoader(rows, batch_size=128, num_workers=2)
    for batch in loader:
        features = model(batch["pixels"])
        everything = gather_all(features)
        loss = (features @ everything.T).logsumexp(1).mean()
        loss.backward()
        optimizer.step()
