"""What the kernel tells: its version and settings, its log of hardware errors, its clock."""

from __future__ import annotations

import contextlib
import ctypes
import glob
import os
import re
from typing import List, Optional, Tuple

from _ready import checking, places

LEAST_KERNEL = (5, 5)  # accelerate warns below: huggingface/accelerate#1929
FAST_CLOCKS = {"tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", "timebase", "tod", "xen"}
UNSYNCHRONISED = 0x40  # STA_UNSYNC, linux/timex.h
LOG_CAP = 2**23
# Anchored where fifteen characters are enough: the kernel also logs names of programs, which users choose.
UNCORRECTED = re.compile(
    r"mce:.*\[Hardware Error\].*(?:Uncorrected|UC\b|PCC)|\bUncorrected error|AER:.*(?:Uncorrect(?:ed|able).*(?:Fatal|Non-Fatal)|severity=Uncorrect)"
    r"|^EDAC \w+:? .*\bUE\b|Memory failure: 0x|\[Hardware Error\]:.* severity: (?:fatal|uncorrected)|nvme.*controller is down|Unrecovered read error",
    re.IGNORECASE,
)
NARROW = re.compile(r"\S+ \S+: .*PCIe bandwidth, limited by .*", re.IGNORECASE)


def version(asked: checking.Asked, told: checking.Told) -> None:
    release = places.line(asked.root, "/proc/sys/kernel/osrelease") or os.uname().release
    found = re.match(r"(\d+)\.(\d+)", release)
    old = bool(found) and (int(found[1]), int(found[2])) < LEAST_KERNEL if found else False
    told.say(
        "host.kernel",
        "warn" if old else "ok",
        f"Kernel {release}{': processes of a training were seen to hang below 5.5' if old else ''}.",
        release,
        fix="boot a newer kernel",
    )
    checking.value("kernel", release)


def uptime(asked: checking.Asked, told: checking.Told) -> None:
    seconds = float(places.line(asked.root, "/proc/uptime").split()[0])
    least = told.threshold("host.uptime", 600.0)
    says = f"This host is up for {seconds / 3600:.1f} h." if seconds >= 3600 else f"This host is up for {seconds:.0f} s."
    told.say(
        "host.uptime", "warn" if seconds < least else "ok", says, round(seconds), fix="last -x reboot | head; wait until its services are up", threshold=least
    )


def clock(asked: checking.Asked, told: checking.Told) -> None:
    source = places.line(asked.root, "/sys/devices/system/clocksource/clocksource0/current_clocksource")
    synchronised = synchronised_clock() if asked.root == "/" else None
    slow = bool(source) and source not in FAST_CLOCKS
    how = {True: "kept by NTP", False: "not kept by NTP as far as the kernel knows", None: "kept by nobody that tells"}[synchronised]
    says = f"The clock is read from {source or 'an unknown source'}{', which is slow' if slow else ''}; it is {how}."
    told.say(
        "host.clock",
        "warn" if slow else "ok",
        says,
        [source, synchronised],
        fix="boot with tsc=reliable, or ask why the kernel gave up the TSC (dmesg | grep -i tsc)",
    )
    checking.value("clock.source", source)


def synchronised_clock() -> Optional[bool]:
    """The answer of adjtimex with no change asked for; None where it is forbidden."""
    buffer = ctypes.create_string_buffer(512)
    with contextlib.suppress(Exception):
        if ctypes.CDLL(None).adjtimex(buffer) < 0:
            return None
        return not int.from_bytes(buffer.raw[40:44], "little") & UNSYNCHRONISED  # struct timex: modes, offset, freq, maxerror, esterror, status
    return None


def settings(asked: checking.Asked, told: checking.Told) -> None:
    least = {"vm/max_map_count": 65530, "kernel/pid_max": 32768, "kernel/threads-max": 4096 * asked.nproc, "net/core/somaxconn": 128}
    found = {name: places.number(asked.root, f"/proc/sys/{name}") for name in (*least, "vm/overcommit_memory", "vm/zone_reclaim_mode")}
    low = [f"{name.replace('/', '.')} = {found[name]}, below {number}" for name, number in least.items() if (found[name] or number) < number]
    low += ["vm.overcommit_memory = 2: CUDA reserves more address space than there is memory"] if found["vm/overcommit_memory"] == 2 else []
    told.say(
        "lim.sysctl",
        "warn" if low else "ok",
        f"Settings of the kernel: {'; '.join(low) or 'none is too low'}.",
        found,
        fix="sudo sysctl -w vm.max_map_count=262144 kernel.pid_max=4194304 vm.overcommit_memory=0",
    )
    for name in ("vm/max_map_count", "kernel/pid_max", "vm/overcommit_memory"):
        checking.value(f"sysctl.{name.replace('/', '.')}", found[name])


def log(root: str) -> Optional[List[str]]:
    """The lines of the kernel's ring; None where it may not be read."""
    rows = timed_log(root)
    return None if rows is None else [text for _, text in rows]


def timed_log(root: str) -> Optional[List[Tuple[float, str]]]:
    """(seconds since boot, line); records are `prio,seq,µs since boot,flags;text`. None where it may not be read. Below another root it is a plain file."""
    text = b""
    try:
        file = os.open(places.below(root, "/dev/kmsg"), os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        while len(text) < LOG_CAP:
            try:
                piece = os.read(file, 8192)
            except BrokenPipeError:  # a record was overwritten meanwhile; the next one follows
                continue
            if not piece:
                break
            text += piece
    except OSError:
        pass  # all has been read (EAGAIN), or reading is forbidden after opening
    finally:
        os.close(file)
    rows = [line.partition(";") for line in text.decode("utf-8", "replace").splitlines()]
    stamps = [head.split(",")[2] if head.count(",") >= 2 else "" for head, _, _ in rows]
    return [(int(stamp) / 1e6 if stamp.isdigit() else 0.0, line or head) for stamp, (head, _, line) in zip(stamps, rows)] if text else None


def hardware(asked: checking.Asked, told: checking.Told) -> None:
    counts = {path: places.number(asked.root, path) or 0 for path in places.found(asked.root, "/sys/devices/system/edac/mc/mc*/ue_count")}
    lines = log(asked.root)
    bad = [f"{path} = {count}" for path, count in counts.items() if count]
    bad += [line.strip()[:160] for line in lines or [] if UNCORRECTED.search(line)][-5:]
    narrow = [line.strip()[:160] for line in lines or [] if NARROW.search(line)][-5:]
    fix = "sudo ras-mc-ctl --errors; drain the node and have the part reseated or replaced"
    if bad or narrow:
        told.say("host.mce", "fail" if bad else "warn", f"The kernel tells of hardware: {'; '.join(bad or narrow)}.", [*bad, *narrow], fix=fix)
    elif lines is None and not counts:
        told.say("host.mce", "unknown", "The kernel's log may not be read and there are no EDAC counters: hardware errors are not told.")
    else:
        told.say("host.mce", "ok", f"No uncorrected hardware error in {len(lines or [])} lines of the kernel's log and {len(counts)} memory controllers.")


def limits(root: str) -> None:
    """Values of the kernel's switches that nodes should share."""
    checking.value(
        "boot.settings",
        " ".join(
            word for word in places.line(root, "/proc/cmdline").split() if re.match(r"(?:intel_|amd_)?iommu|pci=|isolcpus|nohz|hugepages|mitigations|tsc", word)
        ),
    )
    checking.value(
        "modules",
        [name for name in ("nvidia_peermem", "gdrdrv", "mlx5_ib", "ib_uverbs", "lustre") if glob.glob(places.below(root, f"/sys/module/{name}"))],
    )
