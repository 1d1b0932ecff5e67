"""The checks of the kernel: its version and settings, its log of hardware errors, its clock."""

from __future__ import annotations

import contextlib
import ctypes
import glob
import os
import re
from typing import Optional

from _shared import checks, kernel_files

LEAST_KERNEL = (5, 5)  # accelerate warns below: huggingface/accelerate#1929
FAST_CLOCKS = {
    "tsc",
    "kvm-clock",
    "arch_sys_counter",
    "hyperv_clocksource_tsc_page",
    "timebase",
    "tod",
    "xen",
}
UNSYNCHRONISED = 0x40  # STA_UNSYNC, linux/timex.h
# Anchored where fifteen characters are enough: the kernel also logs names of programs, which users
# choose.
UNCORRECTED = re.compile(
    r"mce:.*\[Hardware Error\].*(?:Uncorrected|UC\b|PCC)|\bUncorrected"
    r" error|AER:.*(?:Uncorrect(?:ed|able).*(?:Fatal|Non-Fatal)|severity=Uncorrect)"
    r"|^EDAC \w+:? .*\bUE\b|Memory failure: 0x|\[Hardware Error\]:.* severity:"
    r" (?:fatal|uncorrected)|nvme.*controller is down|Unrecovered read error",
    re.IGNORECASE,
)
NARROW = re.compile(r"\S+ \S+: .*PCIe bandwidth, limited by .*", re.IGNORECASE)


def version(launch: checks.Launch, results: checks.Results) -> None:
    release = kernel_files.line(launch.root, "/proc/sys/kernel/osrelease") or os.uname().release
    found = re.match(r"(\d+)\.(\d+)", release)
    old = bool(found) and (int(found[1]), int(found[2])) < LEAST_KERNEL if found else False
    state = "warn" if old else "ok"
    sentence = (
        f"Kernel {release}{': processes of a training were seen to hang below 5.5' if old else ''}."
    )
    results.add("host.kernel", state, sentence, release, fix="boot a newer kernel")
    checks.value("kernel", release)


def uptime(launch: checks.Launch, results: checks.Results) -> None:
    seconds = float(kernel_files.line(launch.root, "/proc/uptime").split()[0])
    least = results.threshold("host.uptime", 600.0)
    sentence = (
        f"This host is up for {seconds / 3600:.1f} h."
        if seconds >= 3600
        else f"This host is up for {seconds:.0f} s."
    )
    state = "warn" if seconds < least else "ok"
    fix = "last -x reboot | head; wait until its services are up"
    results.add("host.uptime", state, sentence, round(seconds), fix=fix, threshold=least)


def clock(launch: checks.Launch, results: checks.Results) -> None:
    source = kernel_files.line(
        launch.root, "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    )
    synchronised = synchronised_clock() if launch.root == "/" else None
    slow = bool(source) and source not in FAST_CLOCKS
    how = {
        True: "kept by NTP",
        False: "not kept by NTP as far as the kernel knows",
        None: "not known by the kernel to be kept",
    }[synchronised]
    sentence = (
        "The clock is read from"
        f" {source or 'an unknown source'}{', which is slow' if slow else ''}; it is {how}."
    )
    fix = "boot with tsc=reliable, or ask why the kernel gave up the TSC (dmesg | grep -i tsc)"
    results.add("host.clock", "warn" if slow else "ok", sentence, [source, synchronised], fix=fix)
    checks.value("clock.source", source)


def synchronised_clock() -> Optional[bool]:
    """The answer of adjtimex with no change asked for; None where it is forbidden."""
    buffer = ctypes.create_string_buffer(512)
    with contextlib.suppress(Exception):
        if ctypes.CDLL(None).adjtimex(buffer) < 0:
            return None
        # struct timex: modes, offset, freq, maxerror, esterror, status
        return not int.from_bytes(buffer.raw[40:44], "little") & UNSYNCHRONISED
    return None


def settings(launch: checks.Launch, results: checks.Results) -> None:
    least = {
        "vm/max_map_count": 65530,
        "kernel/pid_max": 32768,
        "kernel/threads-max": 4096 * launch.nproc,
        "net/core/somaxconn": 128,
    }
    found = {
        name: kernel_files.number(launch.root, f"/proc/sys/{name}")
        for name in (*least, "vm/overcommit_memory", "vm/zone_reclaim_mode")
    }
    low = [
        f"{name.replace('/', '.')} = {found[name]}, below {number}"
        for name, number in least.items()
        if (found[name] or number) < number
    ]
    low += (
        ["vm.overcommit_memory = 2: CUDA reserves more address space than there is memory"]
        if found["vm/overcommit_memory"] == 2
        else []
    )
    sentence = f"Settings of the kernel: {'; '.join(low) or 'none is too low'}."
    fix = "sudo sysctl -w vm.max_map_count=262144 kernel.pid_max=4194304 vm.overcommit_memory=0"
    results.add("lim.sysctl", "warn" if low else "ok", sentence, found, fix=fix)
    for name in ("vm/max_map_count", "kernel/pid_max", "vm/overcommit_memory"):
        checks.value(f"sysctl.{name.replace('/', '.')}", found[name])


def hardware(launch: checks.Launch, results: checks.Results) -> None:
    counts = {
        path: kernel_files.number(launch.root, path) or 0
        for path in kernel_files.matching(launch.root, "/sys/devices/system/edac/mc/mc*/ue_count")
    }
    rows = kernel_files.kernel_log(launch.root)
    lines = None if rows is None else [text for _, text in rows]
    bad = [f"{path} = {count}" for path, count in counts.items() if count]
    bad += [line.strip()[:160] for line in lines or [] if UNCORRECTED.search(line)][-5:]
    narrow = [line.strip()[:160] for line in lines or [] if NARROW.search(line)][-5:]
    fix = "sudo ras-mc-ctl --errors; drain the node and have the part reseated or replaced"
    if bad or narrow:
        sentence = f"The kernel reports hardware errors: {'; '.join(bad or narrow)}."
        results.add("host.mce", "fail" if bad else "warn", sentence, [*bad, *narrow], fix=fix)
    elif lines is None and not counts:
        sentence = "Hardware errors are unknown: the kernel's log is closed, EDAC has no counters."
        results.add("host.mce", "unknown", sentence)
    else:
        results.add(
            "host.mce",
            "ok",
            f"No uncorrected hardware error in {len(lines or [])} lines of the kernel's log and"
            f" {len(counts)} memory controllers.",
        )


def limits(root: str) -> None:
    """Values of the kernel's switches that nodes should share."""
    checks.value(
        "boot.settings",
        " ".join(
            option
            for option in kernel_files.line(root, "/proc/cmdline").split()
            if re.match(
                r"(?:intel_|amd_)?iommu|pci=|isolcpus|nohz|hugepages|mitigations|tsc", option
            )
        ),
    )
    checks.value(
        "modules",
        [
            name
            for name in ("nvidia_peermem", "gdrdrv", "mlx5_ib", "ib_uverbs", "lustre")
            if glob.glob(kernel_files.below(root, f"/sys/module/{name}"))
        ],
    )
