"""What somebody said of the job's surroundings: an environment dump, limits, versions,
interfaces, the size of the launch.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class Given(Fact):
    """One named value. `number` is it as a number where it is one, in the unit that the name ends
    in.

    Names: `env.NAME`, `limit.nofile`, `limit.memlock_bytes`, `limit.nproc`, `limit.as_bytes`,
    `limit.stack_bytes`, `shm.size_bytes`,
    `shm.free_bytes`, `memory.limit_bytes`, `memory.total_bytes`, `cpus`, `nodes`, `gpus_per_node`,
    `world_size`, `interface.NAME` (its address), `version.NAME` (python, torch, cuda, nccl, driver,
    datasets, transformers, numpy …), `kernel`, `gpu.NAME`.
    `source` is log, env-file, collect-env or command-line. `host` is empty where it holds for all.
    """

    name: str = ""
    value: str = ""
    number: float | None = None
    source: str = ""
    host: str = ""
