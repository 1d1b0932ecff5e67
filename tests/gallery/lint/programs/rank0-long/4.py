from torch.distributed import barrier, get_rank, init_process_group
from datasets import load_dataset

init_process_group("gloo")
me = get_rank()
if me > 0:
    barrier()
data = load_dataset("c4", "en")
if me == 0:
    barrier()
