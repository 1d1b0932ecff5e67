import os
import shutil

import torch.distributed as dist

dist.init_process_group(backend="gloo")
local_rank = int(os.environ["LOCAL_RANK"])
if local_rank == 0:
    shutil.copytree("/nfs/data", "/scratch/data")
dist.barrier()
