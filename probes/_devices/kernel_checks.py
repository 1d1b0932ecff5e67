"""What the kernel reports of devices: XIDs, device nodes and modules for peer memory."""

from __future__ import annotations

import os
import re

from _devices import xids
from _devices.driver import NO_GPU
from _shared import checks, child_processes, kernel_files

RECENT_HOURS = 2.0  # AzNHC looks as far back


def xid(launch: checks.Launch, results: checks.Results) -> None:
    rows = kernel_files.kernel_log(launch.root)
    if rows is None:
        gpus = bool(kernel_files.nvidia_gpus(launch.root))
        if not gpus:
            results.add("drv.xid", "skip", NO_GPU)
        # most sites keep the log from users; what the driver itself asks for (drv.recovery,
        # drv.ecc, drv.remap) blocks all the same
        elif launch.slot == "step":
            sentence = "Users may not read the kernel log, so XIDs are unknown."
            results.add("drv.xid", "unknown", sentence, severity="degraded")
        else:
            results.add(
                "drv.xid", "unknown", "The kernel log may not be read, so XIDs are unknown."
            )
        return
    hours = results.threshold("drv.xid", RECENT_HOURS)
    now_s = float((kernel_files.line(launch.root, "/proc/uptime").split() or ["0"])[0])
    bad, worth = xids.worst(
        xids.found([text for at_s, text in rows if now_s - at_s <= hours * 3600])
    )
    # What a reset mends says nothing of today once it is old; what only a reboot or hands mend
    # holds until the next boot.
    bad += [
        item
        for item in xids.worst(xids.found([text for _, text in rows]))[0]
        if item.action != xids.RESET and item not in bad
    ]
    sentence = "; ".join(
        f"XID {item.code} of {item.device}{f' ({item.text[:60]})' if item.text else ''}"
        for item in (bad or worth)[:6]
    )
    fix = "; ".join(dict.fromkeys(xids.FIX[item.action] for item in bad or worth))
    results.add(
        "drv.xid",
        "fail" if bad else "warn" if worth else "ok",
        f"XIDs: {sentence or 'none that matters'}.",
        [[item.device, item.code, item.action] for item in (bad + worth)[:64]],
        fix=fix,
        source=xids.SOURCE,
    )


def nodes(launch: checks.Launch, results: checks.Results) -> None:
    """Open the device nodes that a rank opens, each in a child."""
    wanted = [
        path
        for pattern in (
            "/dev/nvidia[0-9]*",
            "/dev/nvidiactl",
            "/dev/nvidia-uvm",
            "/dev/infiniband/uverbs*",
        )
        for path in kernel_files.matching(launch.root, pattern)
    ]
    if not wanted:
        results.add("lim.cgdev", "skip", "There are no device nodes of GPUs or RDMA adapters.")
        return
    answers = child_processes.ask_all(
        [
            lambda path=path: os.close(os.open(kernel_files.below(launch.root, path), os.O_RDWR))  # type: ignore[misc]
            for path in wanted
        ],
        5.0,
    )
    shut = [
        f"{path}: {answer.reply}"
        for path, answer in zip(wanted, answers)
        if answer.how != "answered"
    ]
    every = len(shut) == len(wanted) or any(
        "infiniband" in text or "ctl" in text or "uvm" in text for text in shut
    )
    sentence = f"Device nodes: {'; '.join(shut[:6]) or f'{len(wanted)} can be opened'}."
    fix = "srun --gres=gpu:N; docker run --gpus all --device=/dev/infiniband"
    results.add(
        "lim.cgdev", "fail" if shut and every else "warn" if shut else "ok", sentence, shut, fix=fix
    )


def peer_memory(launch: checks.Launch, results: checks.Results) -> None:
    if not kernel_files.matching(launch.root, "/sys/class/infiniband/*") or not list(
        kernel_files.nvidia_gpus(launch.root)
    ):
        sentence = "GPUDirect RDMA needs a GPU and an RDMA adapter; at least one is missing."
        results.add("drv.peermem", "skip", sentence)
        return
    found = re.match(r"(\d+)\.(\d+)", kernel_files.line(launch.root, "/proc/sys/kernel/osrelease"))
    opened = "Open Kernel Module" in kernel_files.read(launch.root, "/proc/driver/nvidia/version")
    loaded = kernel_files.exists(launch.root, "/sys/module/nvidia_peermem") or bool(
        kernel_files.matching(launch.root, "/sys/kernel/mm/memory_peers/nv_mem*")
    )
    by_dma = bool(opened and found and (int(found[1]), int(found[2])) >= (5, 12))
    how = (
        "nvidia_peermem is loaded"
        if loaded
        else (
            "by dma-buf"
            if by_dma
            else "nvidia_peermem is not loaded, and dma-buf needs kernel 5.12 and the open module"
        )
    )
    state = "ok" if loaded or by_dma else "warn"
    fix = "sudo modprobe nvidia_peermem"
    results.add("drv.peermem", state, f"GPUDirect RDMA: {how}.", [loaded, by_dma], fix=fix)
