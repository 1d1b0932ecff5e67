from datetime import timedelta

import torch.distributed as dist

from orchestrator import Orchestrator
from trainer import train


def main():
    dist.init_process_group("gloo", timeout=timedelta(hours=1))
    trainer_group = dist.new_group([0, 1])
    weight_group = dist.new_group([0, 2])
    if dist.get_rank() < 2:
        train(trainer_group, weight_group)
    else:
        Orchestrator(weight_group).run()


if __name__ == "__main__":
    main()
