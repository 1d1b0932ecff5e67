"""What the kernel tells of devices: XIDs in its log, nodes that can be opened, modules for peer memory."""

from __future__ import annotations

import os
import re

from _devices import xids
from _devices.driver import NO_GPU
from _machine import hardware, kernel
from _ready import checking, child, places

RECENT_HOURS = 2.0  # AzNHC looks as far back


def xid(asked: checking.Asked, told: checking.Told) -> None:
    rows = kernel.timed_log(asked.root)
    if rows is None:
        gpus = bool(list(hardware.gpus(asked.root)))
        if not gpus:
            told.say("drv.xid", "skip", NO_GPU)
        elif asked.slot == "step":  # most sites keep the log from users; what the driver itself asks for (drv.recovery, drv.ecc, drv.remap) blocks all the same
            told.say("drv.xid", "unknown", "The kernel's log may not be read by users: XIDs are not told.", severity="degraded")
        else:
            told.say("drv.xid", "unknown", "The kernel's log may not be read: XIDs are not told.")
        return
    hours = told.threshold("drv.xid", RECENT_HOURS)
    now_s = float((places.line(asked.root, "/proc/uptime").split() or ["0"])[0])
    bad, worth = xids.worst(xids.found([text for at_s, text in rows if now_s - at_s <= hours * 3600]))
    # What a reset mends says nothing of today once it is old; what only a reboot or hands mend holds until the next boot.
    bad += [one for one in xids.worst(xids.found([text for _, text in rows]))[0] if one.action != xids.RESET and one not in bad]
    says = "; ".join(f"XID {one.code} of {one.device}{f' ({one.text[:60]})' if one.text else ''}" for one in (bad or worth)[:6])
    fix = "; ".join(dict.fromkeys(xids.FIX[one.action] for one in bad or worth))
    told.say(
        "drv.xid",
        "fail" if bad else "warn" if worth else "ok",
        f"XIDs: {says or 'none that matters'}.",
        [[one.device, one.code, one.action] for one in (bad + worth)[:64]],
        fix=fix,
        source=xids.SOURCE,
    )


def nodes(asked: checking.Asked, told: checking.Told) -> None:
    """Open the device nodes that a rank opens, each in a child."""
    wanted = [
        path for pattern in ("/dev/nvidia[0-9]*", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/infiniband/uverbs*") for path in places.found(asked.root, pattern)
    ]
    if not wanted:
        told.say("lim.cgdev", "skip", "There are no device nodes of GPUs or RDMA adapters.")
        return
    answers = child.ask_all([lambda path=path: os.close(os.open(places.below(asked.root, path), os.O_RDWR)) for path in wanted], 5.0)  # type: ignore[misc]
    shut = [f"{path}: {answer.reply}" for path, answer in zip(wanted, answers) if answer.how != "answered"]
    every = len(shut) == len(wanted) or any("infiniband" in text or "ctl" in text or "uvm" in text for text in shut)
    told.say(
        "lim.cgdev",
        "fail" if shut and every else "warn" if shut else "ok",
        f"Device nodes: {'; '.join(shut[:6]) or f'{len(wanted)} can be opened'}.",
        shut,
        fix="srun --gres=gpu:N; docker run --gpus all --device=/dev/infiniband",
    )


def peer_memory(asked: checking.Asked, told: checking.Told) -> None:
    if not places.found(asked.root, "/sys/class/infiniband/*") or not list(hardware.gpus(asked.root)):
        told.say("drv.peermem", "skip", "GPUDirect RDMA needs a GPU and an RDMA adapter, and they are not both here.")
        return
    found = re.match(r"(\d+)\.(\d+)", places.line(asked.root, "/proc/sys/kernel/osrelease"))
    opened = "Open Kernel Module" in places.read(asked.root, "/proc/driver/nvidia/version")
    loaded = places.exists(asked.root, "/sys/module/nvidia_peermem") or bool(places.found(asked.root, "/sys/kernel/mm/memory_peers/nv_mem*"))
    by_dma = bool(opened and found and (int(found[1]), int(found[2])) >= (5, 12))
    how = (
        "nvidia_peermem is loaded" if loaded else "by dma-buf" if by_dma else "nvidia_peermem is not loaded, and dma-buf needs kernel 5.12 and the open module"
    )
    told.say("drv.peermem", "ok" if loaded or by_dma else "warn", f"GPUDirect RDMA: {how}.", [loaded, by_dma], fix="sudo modprobe nvidia_peermem")
