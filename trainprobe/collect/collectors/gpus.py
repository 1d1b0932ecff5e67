"""The GPUs by NVML, asked in a child process: a call into a broken driver may never return."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, FrozenSet, List, Mapping, Optional, Tuple

from trainprobe.collect.collector import Collector
from trainprobe.collect.look_results import LookResult, refused
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

if TYPE_CHECKING:
    from trainprobe.system.run import Ran

DEVICES_CAP = 64
PROCESSES_CAP = 512
BUSY_PERCENT = 95.0
HARD_SHARE = 0.4
"""Of the power limit. On an H200 a kernel that spun for ever drew 17 %, small matrices at a
utilisation of 41 % drew 35 %; training draws 50 to 100 % (512 GB200 that waited for a lost rank:
about a quarter of what they drew in training, marin#7344).
"""
ECC_NAMES = ("ecc_uncorrected", "ecc_uncorrected_volatile", "ecc_errors_uncorrected")


@dataclass(frozen=True)
class GpuProcess:
    """A process that holds memory on a GPU."""

    pid: int = 0
    used_bytes: Optional[int] = None


@dataclass(frozen=True)
class Gpu(Fact):
    """One device. What the driver does not tell is None. `throttled` are the reasons for low
    clocks: hw_slowdown, hw_thermal, hw_power_brake, sw_thermal, sw_power.
    """

    index: int = 0
    uuid: str = ""
    name: str = ""
    driver: str = ""
    memory_total_bytes: Optional[int] = None
    memory_used_bytes: Optional[int] = None
    utilization_percent: Optional[float] = None
    power_w: Optional[float] = None
    temperature_c: Optional[float] = None
    ecc_uncorrected: Optional[int] = None
    processes: Tuple[GpuProcess, ...] = ()
    power_limit_w: Optional[float] = None
    sm_clock_mhz: Optional[int] = None
    throttled: Tuple[str, ...] = ()

    @property
    def pids(self) -> FrozenSet[int]:
        """Who holds memory there."""
        return frozenset(process.pid for process in self.processes)

    @property
    def busy(self) -> Optional[bool]:
        """Does a kernel run there all the time? None where the driver does not tell."""
        used = self.utilization_percent
        return None if used is None else used >= BUSY_PERCENT

    @property
    def works_hard(self) -> bool:
        """Does it draw what calculating takes? A kernel that only waits leaves most of it idle."""
        share = (self.power_w or 0.0) / self.power_limit_w if self.power_limit_w else 0.0
        return bool(self.busy) and share >= HARD_SHARE

    @property
    def drawn(self) -> str:
        """Its power in words, such as `119 of 700 W`; "" where the driver does not tell."""
        if self.power_w is None:
            return ""
        of = f" of {self.power_limit_w:.0f}" if self.power_limit_w else ""
        return f"{self.power_w:.0f}{of} W"


def read_gpus(deadline_s: float) -> LookResult:
    """No driver, no library and no device are results that say so."""
    from trainprobe.collect.child_programs import run_child

    ran = run_child(
        "gpus_child", timeout_s=deadline_s, site=True, kill_s=2.0, output_cap_bytes=4 * 2**20
    )
    return understand(ran, deadline_s)


def understand(ran: Ran, deadline_s: float) -> LookResult:
    """Turn the child's answer into a look."""
    if ran.ended.how == "unkillable":
        return refused(
            "timed_out",
            f"NVML gave no answer within {deadline_s:g} s and cannot be killed: it hangs in the"
            " driver (see the kernel log)",
        )
    if ran.ended.how == "timed_out":
        return refused(
            "timed_out",
            f"NVML gave no answer within {deadline_s:g} s; the driver may hang (see the kernel log"
            " and nvidia-smi)",
        )
    if ran.ended.how == "not_started":
        return refused("unavailable", f"NVML could not be asked: {ran.ended.reason}")
    if ran.ended.how != "exited" or ran.ended.code != 0:
        how = f"signal {ran.ended.signal}" if ran.ended.signal else f"exit status {ran.ended.code}"
        return refused("crashed", f"the program that asks NVML ended with {how}")
    try:
        reply = json.loads(ran.stdout)
    except (ValueError, RecursionError):
        return refused("crashed", "the program that asks NVML printed nonsense")
    return parse_reply(reply)


def parse_reply(reply: Any) -> LookResult:
    """Check the shape of {driver, devices: […]} or {missing: reason}."""
    if not isinstance(reply, dict):
        return refused("crashed", "the program that asks NVML printed nonsense")
    if isinstance(reply.get("missing"), str):
        return refused("unavailable", reply["missing"][:500])
    rows = reply.get("devices")
    if not isinstance(rows, list):
        return refused("crashed", "the program that asks NVML told of no devices")
    devices = [_device(row) for row in rows[:DEVICES_CAP] if isinstance(row, dict)]
    data: Dict[str, Any] = {
        "driver": _text(reply.get("driver")),
        "cuda_driver": _text(reply.get("cuda_driver")),
        "devices": devices,
    }
    if not rows:
        return refused("unavailable", "the NVIDIA driver is there and sees no device", **data)
    lost = [f"device {device['index']}: {device['error']}" for device in devices if device["error"]]
    if lost or len(devices) < len(rows):
        lost = lost or [f"{len(rows) - len(devices)} devices"]
        return refused("partial", f"NVML does not tell of {', '.join(lost)}", **data)
    return LookResult(data)


_NUMBERS = tuple(
    """
    memory_total_bytes memory_used_bytes utilization_percent power_w power_limit_w temperature_c
    ecc_uncorrected ecc_corrected
    """.split()
)


def _device(row: Dict[str, Any]) -> Dict[str, Any]:
    index = _number(row.get("index"))
    rows = row.get("processes")
    processes: List[Dict[str, Any]] = [
        {"pid": each["pid"], "used_bytes": _number(each.get("used_bytes"))}
        for each in (rows if isinstance(rows, list) else [])[:PROCESSES_CAP]
        if isinstance(each, dict) and isinstance(each.get("pid"), int)
    ]
    return {
        "index": int(index) if index is not None else -1,
        "uuid": _text(row.get("uuid")),
        "name": _text(row.get("name")),
        **{name: _number(row.get(name)) for name in _NUMBERS},
        "processes": processes,
        "error": _text(row.get("error")),
    }


def _text(value: Any) -> str:
    return value[:200] if isinstance(value, str) else ""


def _number(value: Any) -> Optional[float]:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if math.isfinite(value) else None


def parse_gpus(record: Evidence) -> List[Fact]:
    driver = fields.text(record.data, "driver")

    def device(row: Mapping[str, Any]) -> Fact:
        if fields.whole(row, "index") is None:
            raise fields.UnreadableError("a GPU without an index")
        processes = fields.each(
            fields.items(row, "processes"), lambda process: fields.build(GpuProcess, process)
        )
        ecc = [fields.whole(row, name) for name in ECC_NAMES if row.get(name) is not None]
        return fields.fact(
            Gpu,
            record,
            row,
            driver=driver,
            ecc_uncorrected=ecc[0] if ecc else None,
            processes=tuple(processes),
        )

    return fields.each(fields.items(record.data, "devices"), device)


COLLECTOR = Collector(
    "gpus",
    lambda _, deadline_s: read_gpus(deadline_s),
    deadline_s=2.0,
    source="NVML",
    parse=parse_gpus,
    facts=(Gpu,),
)
