"""What NVML says of the GPUs."""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class GpuProcess:
    """A process that holds memory on a GPU."""

    pid: int = 0
    used_bytes: int | None = None


@dataclass(frozen=True)
class Gpu(Fact):
    """One device. What the driver does not tell is None."""

    index: int = 0
    uuid: str = ""
    name: str = ""
    driver: str = ""
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    utilization_percent: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    ecc_uncorrected: int | None = None
    processes: tuple[GpuProcess, ...] = ()
