import os
from datetime import timedelta

import torch
import torch.distributed as dist


class SlurmEnvironment:
    @property
    def num_nodes(self):
        return int(os.environ["SLURM_NNODES"])

    @property
    def tasks_per_node(self):
        return int(os.environ["SLURM_NTASKS_PER_NODE"])

    @property
    def global_rank(self):
        return int(os.environ["SLURM_PROCID"])

    @property
    def local_rank(self):
        return int(os.environ["SLURM_LOCALID"])

    @property
    def world_size(self):
        return self.num_nodes * self.tasks_per_node

    @property
    def main_port(self):
        return 15000 + int(os.environ["SLURM_JOB_ID"]) % 5000

    def init(self):
        torch.set_num_threads(1)
        print(f"Initializing distributed: GLOBAL_RANK: {self.global_rank}, "
              f"MEMBER: {self.global_rank + 1}/{self.world_size}", flush=True)
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{self.main_port}",
                                rank=self.global_rank, world_size=self.world_size, timeout=timedelta(hours=2))
