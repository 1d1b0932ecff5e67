"""The driver's answer, asked once for all checks that need it."""

from __future__ import annotations

import os
import shutil
from typing import Callable, List, Optional

from _devices import nvidia_smi
from _shared import checks, child_processes, kernel_files

# seconds, and how many times as long a first answer may take: without persistence mode each card is
# woken
ANSWER_S = 5.0
PATIENCE = 3.0
NO_GPU = "This job has no NVIDIA GPU on this host."
ADMIN_PATH = "/usr/bin:/bin:/usr/local/bin:/usr/sbin"  # a prolog has no PATH


def program() -> str:
    """Where nvidia-smi lies; "" where it is not."""
    return shutil.which("nvidia-smi", path=os.environ.get("PATH") or ADMIN_PATH) or ""


class Driver:
    """The driver's answer: asked once, by the first check that needs it."""

    answer: Optional[nvidia_smi.Answer] = None

    def ask(self, launch: checks.Launch, results: checks.Results) -> None:
        asker = program()
        cards = kernel_files.nvidia_gpus(launch.root)
        allocated = bool(kernel_files.matching(launch.root, "/dev/nvidia[0-9]*")) or any(
            os.environ.get(name) for name in ("SLURM_GPUS_ON_NODE", "CUDA_VISIBLE_DEVICES")
        )
        # a job without GPUs on a machine that has some
        if (not cards and not asker) or (launch.slot == "step" and not allocated):
            results.add("drv.answer", "skip", NO_GPU)
            results.add("drv.module", "skip", NO_GPU)
            return
        if not asker:
            results.add(
                "drv.answer",
                "unknown",
                f"{len(cards)} GPUs are on the PCI bus, and there is no nvidia-smi to ask their"
                " driver with.",
            )
            results.add("drv.module", "unknown", "There is no nvidia-smi to ask.")
            return
        limit_s = results.threshold("drv.answer", ANSWER_S)
        asking = child_processes.ask_program([asker, "-q", "-x"], PATIENCE * limit_s)
        fix = "drain the node; sudo nvidia-smi --gpu-reset, or a reboot"
        code, text = asking.reply if asking.how == "answered" else (None, "")
        mismatch = "version mismatch" in text.lower()
        state = "fail" if mismatch else "ok" if code == 0 else "unknown"
        version = text.strip()[:200] if mismatch else "of one version" if code == 0 else "unknown"
        reboot = "sudo reboot, or rmmod and modprobe nvidia after the update"
        results.add("drv.module", state, f"Kernel module and NVML: {version}.", fix=reboot)
        if code is None and not (
            asking.how == "raised" and "TimeoutExpired" not in str(asking.reply)
        ):
            sentence = (
                f"The driver gives no answer within {PATIENCE * limit_s:g} s:"
                f" {asking.reply}{f' (in {asking.where})' if asking.where else ''}."
            )
            results.add("drv.answer", "fail", sentence, fix=fix, threshold=f"{limit_s:g} s")
            return
        try:
            self.answer = nvidia_smi.parse(text)
        except ValueError as error:
            results.add(
                "drv.answer",
                "skip" if not cards else "fail",
                f"{error if cards else NO_GPU}.".replace("..", "."),
                code,
                fix=fix,
            )
            return
        slow = asking.took_s > limit_s
        results.add(
            "drv.answer",
            "warn" if slow else "ok",
            f"The driver {self.answer.driver} answers within {asking.took_s:.1f} s.",
            round(asking.took_s, 2),
            fix="switch persistence mode on",
            threshold=f"{limit_s:g} s",
        )

    def of(
        self, ids: List[str], look: Callable[[nvidia_smi.Answer, checks.Results], None]
    ) -> Callable[[checks.Launch, checks.Results], None]:
        """A check of the driver's answer: skipped without a GPU, unknown without an answer."""

        def check(_launch: checks.Launch, results: checks.Results) -> None:
            if self.answer is not None and self.answer.gpus:
                look(self.answer, results)
                return
            skip = results.states.get("drv.answer") == "skip"
            for name in ids:
                state = "skip" if skip else "unknown"
                results.add(name, state, NO_GPU if skip else "The driver reports no GPU.")

        return check
