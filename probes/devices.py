# /// trainprobe
# rung: 16
# ladder: false
# ready: quick
# slots: [step, prolog, epilog, healthcheck]
# question: Are the GPUs and adapters of this host there, healthy and free, as driver and kernel tell?
# scope: host
# needs: []
# timeout_s: 40
# climbs: []
# after: []
# means: The driver or the kernel tells of a GPU that is missing, broken, slowed down or held by somebody else.
# ///
"""Ask the driver by its own program, in a child that is killed when it hangs, and read the kernel's log and PCI bus. No context is made; standard library only.

Flags and environment: see _ready/checking.py; CUDA_VISIBLE_DEVICES. Events: checks, and `value` for what nodes should share.
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import _devices, _machine  # isort: skip  # noqa: E401, F401 - both are found before _ready takes this folder off the path
from _devices import kernel_side, smi, verdicts  # isort: skip
from _devices.driver import NO_GPU, Driver, program  # isort: skip
from _machine import hardware  # isort: skip
from _ready import checking, child, places  # isort: skip

OF_DRIVER = ("drv.persist", "drv.recovery", "drv.ecc", "drv.remap", "drv.fm", "drv.mode", "drv.throttle", "drv.clocks", "drv.temp", "drv.pcie")
DRIVER = Driver()


def count(asked: checking.Asked, told: checking.Told) -> None:
    cards = len(list(hardware.gpus(asked.root)))
    seen = len(DRIVER.answer.gpus) if DRIVER.answer else 0
    given = os.environ.get("SLURM_GPUS_ON_NODE", "") if asked.slot == "step" else ""
    if not cards and not seen and not given:
        told.say("drv.count", "skip", NO_GPU)
        return
    contained = asked.slot == "step" and seen and seen < cards  # a device cgroup or a container shows a share of them
    wrong = [f"{cards} are on the PCI bus, and the driver sees {seen}"] if seen < cards and not contained else []
    wrong += [f"SLURM gave {given}, and {seen} are there"] if given.isdigit() and seen < int(given) else []
    state = "unknown" if DRIVER.answer is None and told.states.get("drv.answer") == "unknown" else "fail" if wrong else "ok"
    told.say("drv.count", state, f"GPUs: {'; '.join(wrong) or seen}.", [cards, seen], fix="dmesg | grep -i xid; drain the node")


def links(_answer: smi.Answer, told: checking.Told) -> None:
    asking = child.ask_program([program(), "nvlink", "-s"], 5.0)
    if asking.how != "answered":
        told.say("drv.nvlink", "unknown", f"The driver does not tell of NVLinks: {asking.reply}.")
    else:
        verdicts.nvlinks(smi.links(asking.reply[1]), told)


def of_this_job(pid: int) -> bool:
    """Whether a process runs in our own cgroup, or is ours by session."""
    return bool(places.read("/", f"/proc/{pid}/cgroup")) and places.read("/", f"/proc/{pid}/cgroup") == places.read("/", "/proc/self/cgroup") != "0::/\n"


def values(answer: smi.Answer, _told: checking.Told) -> None:
    checking.value("driver.version", answer.driver)
    checking.value("driver.cuda", answer.cuda)
    checking.value("gpus_per_node", str(len(answer.gpus)))
    for name, what in (
        ("gpu.models", [gpu.name for gpu in answer.gpus]),
        ("gpu.memory_mib", [str(gpu.memory) for gpu in answer.gpus]),
        ("gpu.mig", [gpu.mig for gpu in answer.gpus]),
    ):
        checking.value(name, " ".join(sorted(set(what))))


CHECKS = (
    checking.Check(("drv.answer", "drv.module"), DRIVER.ask),
    checking.Check(("drv.count",), count),
    checking.Check(("lim.cgdev",), kernel_side.nodes),
    checking.Check(OF_DRIVER[:6], DRIVER.of(list(OF_DRIVER[:6]), verdicts.health)),
    checking.Check(OF_DRIVER[6:], DRIVER.of(list(OF_DRIVER[6:]), verdicts.pace)),
    checking.Check(("drv.nvlink",), DRIVER.of(["drv.nvlink"], links)),
    checking.Check(("drv.memused",), DRIVER.of(["drv.memused"], lambda answer, told: verdicts.held(answer, told, of_this_job))),
    checking.Check(("drv.xid",), kernel_side.xid, checking.ADMIN),
    checking.Check(("drv.peermem",), kernel_side.peer_memory, checking.ADMIN),
    checking.Check((), DRIVER.of([], values)),
)

if __name__ == "__main__":
    checking.make(CHECKS, __doc__ or "", "The GPUs are in order as far as the driver tells.")
