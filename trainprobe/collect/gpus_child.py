"""The program of `gpus.py`: ask NVML, changing nothing; print one JSON object; exit 0."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Callable, Dict, List, Optional


def main() -> None:
    # Our own folder is first on the path of a program; it holds modules whose names must not hide
    # others.
    own_folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != own_folder]
    sys.stdout.write(json.dumps(ask()) + "\n")


def ask() -> Dict[str, Any]:
    """{driver, cuda_driver, devices}, or {missing: why there is nothing to ask}."""
    try:
        import pynvml  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        return {
            "missing": (
                "the NVML binding is not installed; install it with: pip install nvidia-ml-py"
            )
        }
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return {"missing": f"no NVIDIA driver answers here (NVML: {error})"}
    reply: Dict[str, Any] = {"devices": []}
    reply["driver"] = _text(_tried(pynvml, pynvml.nvmlSystemGetDriverVersion))
    version = _tried(pynvml, pynvml.nvmlSystemGetCudaDriverVersion)
    reply["cuda_driver"] = (
        f"{version // 1000}.{version % 1000 // 10}" if isinstance(version, int) else ""
    )
    for index in range(_tried(pynvml, pynvml.nvmlDeviceGetCount) or 0):
        try:
            reply["devices"].append(_device(pynvml, index))
        except pynvml.NVMLError as error:
            # A device that fell off the bus; the others still answer.
            reply["devices"].append({"index": index, "error": str(error)})
    return reply


def _device(nvml: Any, index: int) -> Dict[str, Any]:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = _tried(nvml, lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
    use = _tried(nvml, lambda: nvml.nvmlDeviceGetUtilizationRates(handle))
    power_mw = _tried(nvml, lambda: nvml.nvmlDeviceGetPowerUsage(handle))
    limit_mw = _tried(nvml, lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle))
    return {
        "index": index,
        "uuid": _text(_tried(nvml, lambda: nvml.nvmlDeviceGetUUID(handle))),
        "name": _text(_tried(nvml, lambda: nvml.nvmlDeviceGetName(handle))),
        "memory_total_bytes": None if memory is None else memory.total,
        "memory_used_bytes": None if memory is None else memory.used,
        "utilization_percent": None if use is None else use.gpu,
        "power_w": None if power_mw is None else power_mw / 1000,
        "power_limit_w": None if limit_mw is None else limit_mw / 1000,
        "temperature_c": _tried(
            nvml, lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)
        ),
        "sm_clock_mhz": _tried(
            nvml, lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)
        ),
        "throttled": _throttled(nvml, handle),
        "ecc_uncorrected": _ecc(nvml, handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED),
        "ecc_corrected": _ecc(nvml, handle, nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED),
        "processes": _processes(nvml, handle),
    }


# Bits of nvmlClocksEventReasons (nvml.h); idling and the clocks that an application asked for are
# no faults.
_REASONS = (
    (0x8, "hw_slowdown"),
    (0x40, "hw_thermal"),
    (0x80, "hw_power_brake"),
    (0x20, "sw_thermal"),
    (0x4, "sw_power"),
)


def _throttled(nvml: Any, handle: Any) -> List[str]:
    bits = _tried(nvml, lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)) or 0
    return [name for bit, name in _REASONS if bits & bit]


def _ecc(nvml: Any, handle: Any, kind: Any) -> Optional[int]:
    """Errors since the driver was loaded."""
    count: Optional[int] = _tried(
        nvml, lambda: nvml.nvmlDeviceGetTotalEccErrors(handle, kind, nvml.NVML_VOLATILE_ECC)
    )
    return count


def _processes(nvml: Any, handle: Any) -> List[Dict[str, Any]]:
    found = _tried(nvml, lambda: nvml.nvmlDeviceGetComputeRunningProcesses(handle)) or []
    return [{"pid": each.pid, "used_bytes": each.usedGpuMemory} for each in found]


def _tried(nvml: Any, question: Callable[[], Any]) -> Any:
    """The answer, or None where this device or driver does not know the question."""
    try:
        return question()
    except (nvml.NVMLError, AttributeError):
        return None


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")


if __name__ == "__main__":
    main()
