from datetime import timedelta

import torch.distributed as dist
from datasets import load_dataset

dist.init_process_group("nccl", timeout=timedelta(hours=6))
if dist.get_rank() == 0:
    load_dataset("wiki").map(len, num_proc=8)
dist.barrier()
