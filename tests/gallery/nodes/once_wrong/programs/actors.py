"""A training by four actors of Ray, of which the last takes a lock twice at step 3.

python actors.py FOLDER
"""

from __future__ import annotations

import os
import socket
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import ray
import torch
import torch.distributed as dist
from training import take_the_lock_twice


@ray.remote(num_cpus=1)
class Trainer:
    def __init__(self, rank: int, world: int, folder: Path) -> None:
        self.rank, self.world, self.folder = rank, world, folder

    def meeting_point(self) -> tuple[str, int]:
        with socket.socket() as one:
            one.bind(("", 0))
            return ray.util.get_node_ip_address(), one.getsockname()[1]

    def set_up(self, address: str, port: int) -> None:
        given = {"MASTER_ADDR": address, "MASTER_PORT": str(port)}
        os.environ.update(given, RANK=str(self.rank), WORLD_SIZE=str(self.world))
        dist.init_process_group("gloo", timeout=timedelta(hours=1))

    def train(self) -> None:
        for step in range(100_000):
            if self.rank == self.world - 1 and step == 3:
                (self.folder / "sick").write_text(socket.gethostname())
                take_the_lock_twice(self.folder)
            dist.all_reduce(torch.ones(4))
            time.sleep(0.05)


def main() -> None:
    ray.init(address="auto", runtime_env={"working_dir": str(Path(__file__).parent)})
    folder = Path(sys.argv[1])
    actors: list[Any] = [
        Trainer.options(scheduling_strategy="SPREAD").remote(rank, 4, folder) for rank in range(4)
    ]
    address, port = ray.get(actors[0].meeting_point.remote())
    ray.get([actor.set_up.remote(address, port) for actor in actors])
    ray.get([actor.train.remote() for actor in actors])


if __name__ == "__main__":
    main()
