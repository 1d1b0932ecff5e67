# /// trainprobe
# rung: 16
# ladder: false
# ready: quick
# slots: [step, prolog, epilog, healthcheck]
# question: Are this host's GPUs and adapters present, healthy and free, according to driver and
#   kernel?
# scope: host
# needs: []
# timeout_s: 40
# climbs: []
# after: []
# means: The driver or the kernel reports a GPU that is missing, broken, slowed down or in use
#   by somebody else.
# ///
"""Ask the driver by its own program, in a child that is killed when it hangs, and read the kernel's
log and PCI bus. No context is made; standard library only.

Flags and environment: see `_shared/checks.py`; CUDA_VISIBLE_DEVICES. Events: checks, and
`value` for what nodes should share.
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from _devices import gpu_checks, kernel_checks, nvidia_smi
from _devices.driver import NO_GPU, Driver, program
from _shared import checks, child_processes, kernel_files

OF_DRIVER = (
    "drv.persist",
    "drv.recovery",
    "drv.ecc",
    "drv.remap",
    "drv.fm",
    "drv.mode",
    "drv.throttle",
    "drv.clocks",
    "drv.temp",
    "drv.pcie",
)
DRIVER = Driver()


def count(launch: checks.Launch, results: checks.Results) -> None:
    cards = len(kernel_files.nvidia_gpus(launch.root))
    visible = len(DRIVER.answer.gpus) if DRIVER.answer else 0
    allocated = os.environ.get("SLURM_GPUS_ON_NODE", "") if launch.slot == "step" else ""
    if not cards and not visible and not allocated:
        results.add("drv.count", "skip", NO_GPU)
        return
    # a device cgroup or a container shows a share of them
    contained = launch.slot == "step" and visible and visible < cards
    wrong = (
        [f"{cards} are on the PCI bus, and the driver sees {visible}"]
        if visible < cards and not contained
        else []
    )
    wrong += (
        [f"SLURM allocated {allocated}, and {visible} are there"]
        if allocated.isdecimal() and visible < int(allocated)
        else []
    )
    state = (
        "unknown"
        if DRIVER.answer is None and results.states.get("drv.answer") == "unknown"
        else "fail"
        if wrong
        else "ok"
    )
    sentence = f"GPUs: {'; '.join(wrong) or visible}."
    fix = "dmesg | grep -i xid; drain the node"
    results.add("drv.count", state, sentence, [cards, visible], fix=fix)


def links(_answer: nvidia_smi.Answer, results: checks.Results) -> None:
    asking = child_processes.ask_program([program(), "nvlink", "-s"], 5.0)
    if asking.how != "answered":
        results.add("drv.nvlink", "unknown", f"The driver does not report NVLinks: {asking.reply}.")
    else:
        gpu_checks.nvlinks(nvidia_smi.links(asking.reply[1]), results)


def of_this_job(pid: int) -> bool:
    """Whether a process runs in our own cgroup, or is ours by session."""
    return (
        bool(kernel_files.read("/", f"/proc/{pid}/cgroup"))
        and kernel_files.read("/", f"/proc/{pid}/cgroup")
        == kernel_files.read("/", "/proc/self/cgroup")
        != "0::/\n"
    )


def values(answer: nvidia_smi.Answer, _results: checks.Results) -> None:
    checks.value("driver.version", answer.driver)
    checks.value("driver.cuda", answer.cuda)
    checks.value("gpus_per_node", str(len(answer.gpus)))
    for name, what in (
        ("gpu.models", [gpu.name for gpu in answer.gpus]),
        ("gpu.memory_mib", [str(gpu.memory) for gpu in answer.gpus]),
        ("gpu.mig", [gpu.mig for gpu in answer.gpus]),
    ):
        checks.value(name, " ".join(sorted(set(what))))


CHECKS = (
    checks.Check(("drv.answer", "drv.module"), DRIVER.ask),
    checks.Check(("drv.count",), count),
    checks.Check(("lim.cgdev",), kernel_checks.nodes),
    checks.Check(OF_DRIVER[:6], DRIVER.of(list(OF_DRIVER[:6]), gpu_checks.health)),
    checks.Check(OF_DRIVER[6:], DRIVER.of(list(OF_DRIVER[6:]), gpu_checks.pace)),
    checks.Check(("drv.nvlink",), DRIVER.of(["drv.nvlink"], links)),
    checks.Check(
        ("drv.memused",),
        DRIVER.of(
            ["drv.memused"], lambda answer, results: gpu_checks.held(answer, results, of_this_job)
        ),
    ),
    checks.Check(("drv.xid",), kernel_checks.xid, checks.ADMIN),
    checks.Check(("drv.peermem",), kernel_checks.peer_memory, checks.ADMIN),
    checks.Check((), DRIVER.of([], values)),
)

if __name__ == "__main__":
    checks.run(CHECKS, __doc__ or "", "The GPUs are in order, according to the driver.")
