import torch.distributed as dist
from datasets import load_dataset


def main(tok):
    dist.init_process_group("nccl")
    if dist.get_rank() == 0:
        ds = load_dataset("wiki", split="train").map(tok, batched=True)
        ds.save_to_disk("cache")
    dist.barrier()
