"""What NVML says, from made-up replies; and that it is asked in a child that can be killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trainprobe.case import Case
from trainprobe.collect import child_programs, gpus_child
from trainprobe.collect.collector import JobView, collect
from trainprobe.collect.collectors import gpus
from trainprobe.collect.collectors.gpus import parse_reply, read_gpus

H200 = {
    "index": 0,
    "uuid": "GPU-aa",
    "name": "NVIDIA H200",
    "memory_total_bytes": 150_754_820_096,
    "memory_used_bytes": 1_000_000,
    "utilization_percent": 99,
    "power_w": 322.5,
    "temperature_c": 51,
    "ecc_uncorrected": 0,
    "processes": [{"pid": 77, "used_bytes": None}, {"pid": "x"}, 3],
}
FAKE_NVML = """
class NVMLError(Exception): pass
NVML_TEMPERATURE_GPU = NVML_VOLATILE_ECC = NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 0
NVML_MEMORY_ERROR_TYPE_CORRECTED = 1
class Row:
    def __init__(self, **values): self.__dict__.update(values)
def nvmlInit(): pass
def nvmlSystemGetDriverVersion(): return b"570.86.15"
def nvmlSystemGetCudaDriverVersion(): return 12080
def nvmlDeviceGetCount(): return 2
def nvmlDeviceGetHandleByIndex(index):
    if index == 1: raise NVMLError("GPU is lost")
    return index
def nvmlDeviceGetMemoryInfo(handle): return Row(total=100, used=40)
def nvmlDeviceGetUtilizationRates(handle): raise NVMLError("Not Supported")
def nvmlDeviceGetPowerUsage(handle): return 322500
def nvmlDeviceGetUUID(handle): return "GPU-aa"
def nvmlDeviceGetName(handle): return b"NVIDIA H200"
def nvmlDeviceGetTemperature(handle, sensor): return 51
def nvmlDeviceGetTotalEccErrors(handle, kind, counter): return kind
def nvmlDeviceGetComputeRunningProcesses(handle): return [Row(pid=77, usedGpuMemory=None)]
"""


def test_a_reply_is_read() -> None:
    seen = parse_reply({"driver": "570.86.15", "cuda_driver": "12.8", "devices": [H200]})
    assert seen.outcome == "ok"
    assert seen.data["driver"] == "570.86.15"
    (device,) = seen.data["devices"]
    assert (device["uuid"], device["power_w"], device["ecc_corrected"]) == ("GPU-aa", 322.5, None)
    assert device["processes"] == [{"pid": 77, "used_bytes": None}]


@pytest.mark.parametrize(
    ("reply", "outcome", "says"),
    [
        ({"missing": "no driver"}, "unavailable", "no driver"),
        ({"driver": "1", "devices": []}, "unavailable", "sees no device"),
        (
            {"devices": [{"index": 0, "error": "GPU is lost"}, H200]},
            "partial",
            "device 0: GPU is lost",
        ),
        ({"devices": [3, H200]}, "partial", "does not tell"),
        ({"devices": "many"}, "crashed", "no devices"),
        ([], "crashed", "nonsense"),
        (None, "crashed", "nonsense"),
    ],
)
def test_odd_replies(reply: Any, outcome: str, says: str) -> None:
    seen = parse_reply(reply)
    assert seen.outcome == outcome
    assert says in seen.reason


def test_values_of_wrong_types_are_unknown() -> None:
    (device,) = parse_reply(
        {
            "devices": [
                {
                    "index": None,
                    "power_w": "hot",
                    "temperature_c": float("nan"),
                    "processes": 7,
                    "name": 3,
                }
            ]
        }
    ).data["devices"]
    assert (
        device["index"],
        device["power_w"],
        device["temperature_c"],
        device["processes"],
        device["name"],
    ) == (-1, None, None, [], "")


def child_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nvml: str) -> None:
    """Run the real child with another pynvml in front of any real one."""
    (tmp_path / "pynvml.py").write_text(nvml)
    program = tmp_path / "ask" / "gpus_child.py"
    program.parent.mkdir()
    program.write_text(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        + Path(gpus_child.__file__).read_text().replace("from __future__ import annotations\n", "")
    )
    monkeypatch.setattr(child_programs, "HERE", str(program.parent))


def test_the_child_asks_and_one_lost_device_does_not_hide_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child_with(tmp_path, monkeypatch, FAKE_NVML)
    seen = read_gpus(10)
    assert seen.outcome == "partial"
    assert "GPU is lost" in seen.reason
    assert (seen.data["driver"], seen.data["cuda_driver"]) == ("570.86.15", "12.8")
    first, second = seen.data["devices"]
    assert (
        first["name"],
        first["memory_used_bytes"],
        first["utilization_percent"],
        first["power_w"],
    ) == ("NVIDIA H200", 40, None, 322.5)
    assert (first["ecc_uncorrected"], first["ecc_corrected"], first["power_limit_w"]) == (
        0,
        1,
        None,
    )
    assert (second["index"], second["error"]) == (1, "GPU is lost")


@pytest.mark.parametrize(
    ("nvml", "outcome", "says"),
    [
        ("import time; time.sleep(600)", "timed_out", "no answer within 1 s"),
        ("import os; os.kill(os.getpid(), 11)", "crashed", "signal 11"),
        ("raise ImportError", "unavailable", "nvidia-ml-py"),
        ("print('welcome')\nraise ImportError", "crashed", "nonsense"),
        (
            (
                "class NVMLError(Exception): pass\ndef nvmlInit(): raise NVMLError('Driver Not"
                " Loaded')"
            ),
            "unavailable",
            "Driver Not Loaded",
        ),
        ("raise SystemExit(3)", "crashed", "exit status 3"),
    ],
)
def test_a_library_that_hangs_crashes_or_is_missing(
    nvml: str, outcome: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child_with(tmp_path, monkeypatch, nvml)
    seen = read_gpus(
        1 if outcome == "timed_out" else 60
    )  # a busy machine may take seconds to start a Python
    assert seen.outcome == outcome
    assert says in seen.reason


def test_this_machine_is_asked(case: Case) -> None:
    (evidence,) = collect(case, gpus.COLLECTOR, JobView(), 5.0)
    assert evidence.kind == "gpus"
    assert evidence.outcome == "ok" or evidence.reason
