"""What NVML says of this machine's GPUs, asked in a child process: a call into a broken driver may never come back."""

from __future__ import annotations

import json
import math
import os
import sys
from typing import Any, Dict, List, Optional

from trainprobe.case import Case
from trainprobe.collect.members import host_subject
from trainprobe.collect.seen import Seen, record, refused, timed
from trainprobe.model.evidence import Evidence
from trainprobe.system.run import Ran, run

DEVICES_CAP = 64
PROCESSES_CAP = 512
ASK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpus_child.py")


def look_at_gpus(case: Case, cell: str = "", *, deadline_s: float = 5.0) -> Evidence:
    """Record one `gpus`; no driver, no library and no device are looks that say so."""
    return record(case, "gpus", timed(lambda: read_gpus(deadline_s)), subject=host_subject(), cell=cell, source="NVML")


def read_gpus(deadline_s: float) -> Seen:
    """The same without a case. With -E, since the job's PYTHONPATH must not decide which pynvml is asked."""
    ran = run([sys.executable, "-E", "-B", ASK], timeout_s=deadline_s, cwd="/", output_cap_bytes=4 * 2**20)
    return understand(ran, deadline_s)


def understand(ran: Ran, deadline_s: float) -> Seen:
    """Turn the child's answer into a look."""
    if ran.ended.how == "unkillable":
        return refused("timed_out", f"NVML gave no answer within {deadline_s:g} s and cannot be killed: it hangs in the driver (see the kernel log)")
    if ran.ended.how == "timed_out":
        return refused("timed_out", f"NVML gave no answer within {deadline_s:g} s; the driver may hang (see the kernel log and nvidia-smi)")
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


def parse_reply(reply: Any) -> Seen:
    """Check the reply's shape: {driver, devices: [...]}, or {missing: reason}. What NVML does not tell of a device is None."""
    if not isinstance(reply, dict):
        return refused("crashed", "the program that asks NVML printed nonsense")
    if isinstance(reply.get("missing"), str):
        return refused("unavailable", reply["missing"][:500])
    rows = reply.get("devices")
    if not isinstance(rows, list):
        return refused("crashed", "the program that asks NVML told of no devices")
    devices = [_device(row) for row in rows[:DEVICES_CAP] if isinstance(row, dict)]
    data: Dict[str, Any] = {"driver": _text(reply.get("driver")), "cuda_driver": _text(reply.get("cuda_driver")), "devices": devices}
    if not rows:
        return refused("unavailable", "the NVIDIA driver is there and sees no device", **data)
    lost = [f"device {device['index']}: {device['error']}" for device in devices if device["error"]]
    if lost or len(devices) < len(rows):
        lost = lost or [f"{len(rows) - len(devices)} devices"]
        return refused("partial", f"NVML does not tell of {', '.join(lost)}", **data)
    return Seen(data)


_NUMBERS = ("memory_total_bytes", "memory_used_bytes", "utilization_percent", "power_w", "power_limit_w", "temperature_c", "ecc_uncorrected", "ecc_corrected")


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
