"""What NVML says of the GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainprobe.facts import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class GpuProcess:
    """A process that holds memory on a GPU."""

    pid: int = 0
    used_bytes: int | None = None


@dataclass(frozen=True)
class Gpu(Fact):
    """One device. What the driver does not tell is None. `throttled` are the reasons for low clocks: hw_slowdown, hw_thermal, hw_power_brake, sw_thermal, sw_power."""

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
    power_limit_w: float | None = None
    sm_clock_mhz: int | None = None
    throttled: tuple[str, ...] = ()


def parse_gpus(record: Evidence) -> list[Fact]:
    driver = fields.text(record.data, "driver")

    def device(row: Mapping[str, Any]) -> Fact:
        index = fields.whole(row, "index")
        if index is None:
            raise fields.UnreadableError("a GPU without an index")
        processes = fields.each(fields.items(row, "processes"), lambda one: GpuProcess(fields.whole(one, "pid") or 0, fields.whole(one, "used_bytes")))
        return Gpu(
            evidence=(record.id,),
            cell=record.cell,
            index=index,
            uuid=fields.text(row, "uuid"),
            name=fields.text(row, "name"),
            driver=driver,
            memory_total_bytes=fields.whole(row, "memory_total_bytes"),
            memory_used_bytes=fields.whole(row, "memory_used_bytes"),
            utilization_percent=fields.number(row, "utilization_percent"),
            power_w=fields.number(row, "power_w"),
            temperature_c=fields.number(row, "temperature_c"),
            ecc_uncorrected=next((fields.whole(row, name) for name in ECC_NAMES if row.get(name) is not None), None),
            processes=tuple(processes),
            power_limit_w=fields.number(row, "power_limit_w"),
            sm_clock_mhz=fields.whole(row, "sm_clock_mhz"),
            throttled=fields.texts(row, "throttled"),
        )

    return fields.each(fields.items(record.data, "devices"), device)


ECC_NAMES = ("ecc_uncorrected", "ecc_uncorrected_volatile", "ecc_errors_uncorrected")
