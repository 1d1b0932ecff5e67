import os

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
torch.set_num_threads(os.cpu_count())
