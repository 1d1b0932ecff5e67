import os


class DistributedEnvironment:
    def __init__(self):
        self._setup_distr_env()
        self.master_addr = os.environ["MASTER_ADDR"]
        self.world_size = int(os.environ["WORLD_SIZE"])
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.rank = int(os.environ["RANK"])

    def _setup_distr_env(self):
        nodes = os.environ["SLURM_JOB_NODELIST"].split(",")
        os.environ["MASTER_ADDR"] = nodes[0]
        os.environ.setdefault("MASTER_PORT", "33333")
        per_node = int(os.environ.get("SLURM_NTASKS_PER_NODE", 1))
        os.environ["WORLD_SIZE"] = os.environ.get("SLURM_NTASKS", str(per_node * int(os.environ["SLURM_NNODES"])))
        os.environ["LOCAL_RANK"] = os.environ["SLURM_LOCALID"]
        os.environ["RANK"] = os.environ["SLURM_PROCID"]
