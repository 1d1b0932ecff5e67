"""The driver's answer, asked once for all checks that need it."""

from __future__ import annotations

import os
import shutil
from typing import Callable, List, Optional

from _devices import smi
from _machine import hardware
from _ready import checking, child, places

ANSWER_S, PATIENCE = 5.0, 3.0  # seconds, and how many times as long a first answer may take: without persistence mode each card is woken
NO_GPU = "This host has no NVIDIA GPU that was given to us."
ADMIN_PATH = "/usr/bin:/bin:/usr/local/bin:/usr/sbin"  # a prolog has no PATH


def program() -> str:
    """Where nvidia-smi lies; "" where it is not."""
    return shutil.which("nvidia-smi", path=os.environ.get("PATH") or ADMIN_PATH) or ""


class Driver:
    """The driver's answer: asked once, by the first check that needs it."""

    answer: Optional[smi.Answer] = None

    def ask(self, asked: checking.Asked, told: checking.Told) -> None:
        asker = program()
        cards = list(hardware.gpus(asked.root))
        given = bool(places.found(asked.root, "/dev/nvidia[0-9]*")) or any(os.environ.get(name) for name in ("SLURM_GPUS_ON_NODE", "CUDA_VISIBLE_DEVICES"))
        if (not cards and not asker) or (asked.slot == "step" and not given):  # a job without GPUs on a machine that has some
            told.say("drv.answer", "skip", NO_GPU)
            told.say("drv.module", "skip", NO_GPU)
            return
        if not asker:
            told.say("drv.answer", "unknown", f"{len(cards)} GPUs are on the PCI bus, and there is no nvidia-smi to ask their driver with.")
            told.say("drv.module", "unknown", "There is no nvidia-smi to ask.")
            return
        limit_s = told.threshold("drv.answer", ANSWER_S)
        asking = child.ask_program([asker, "-q", "-x"], PATIENCE * limit_s)
        fix = "drain the node; sudo nvidia-smi --gpu-reset, or a reboot"
        code, text = asking.reply if asking.how == "answered" else (None, "")
        mismatch = "version mismatch" in text.lower()
        told.say(
            "drv.module",
            "fail" if mismatch else "ok" if code == 0 else "unknown",
            f"Kernel module and NVML: {text.strip()[:200] if mismatch else 'of one version' if code == 0 else 'not told'}.",
            fix="sudo reboot, or rmmod and modprobe nvidia after the update",
        )
        if code is None and not (asking.how == "raised" and "TimeoutExpired" not in str(asking.reply)):
            told.say(
                "drv.answer",
                "fail",
                f"The driver gives no answer within {PATIENCE * limit_s:g} s: {asking.reply}{f' (in {asking.where})' if asking.where else ''}.",
                fix=fix,
                threshold=f"{limit_s:g} s",
            )
            return
        try:
            self.answer = smi.parse(text)
        except ValueError as error:
            told.say("drv.answer", "skip" if not cards else "fail", f"{error if cards else NO_GPU}.".replace("..", "."), code, fix=fix)
            return
        slow = asking.took_s > limit_s
        told.say(
            "drv.answer",
            "warn" if slow else "ok",
            f"The driver {self.answer.driver} answers within {asking.took_s:.1f} s.",
            round(asking.took_s, 2),
            fix="switch persistence mode on",
            threshold=f"{limit_s:g} s",
        )

    def of(self, ids: List[str], look: Callable[[smi.Answer, checking.Told], None]) -> Callable[[checking.Asked, checking.Told], None]:
        """A check that needs the answer: skipped where there is no GPU, unknown where the driver gave none."""

        def check(_asked: checking.Asked, told: checking.Told) -> None:
            if self.answer is not None and self.answer.gpus:
                look(self.answer, told)
                return
            skip = told.states.get("drv.answer") == "skip"
            for name in ids:
                told.say(name, "skip" if skip else "unknown", NO_GPU if skip else "The driver told of no GPU.")

        return check
