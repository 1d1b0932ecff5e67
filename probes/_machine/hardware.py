"""The host's processors and memory: governor, NUMA, CPUs, virtualisation, swap, huge pages."""

from __future__ import annotations

import os
import re
from typing import Dict, List, Set

from _shared import checks, kernel_files


def meminfo(root: str) -> Dict[str, int]:
    """Bytes, and for huge pages their number."""
    found = re.findall(
        r"^(\w+):\s+(\d+)( kB)?", kernel_files.read(root, "/proc/meminfo"), re.MULTILINE
    )
    return {name: int(count) * (1024 if unit else 1) for name, count, unit in found}


def governor(launch: checks.Launch, results: checks.Results) -> None:
    files = kernel_files.matching(
        launch.root, "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"
    )
    found = sorted({kernel_files.line(launch.root, path) for path in files})
    checks.value("cpu.governor", " ".join(found))
    if not found:
        results.add(
            "host.governor",
            "skip",
            "The kernel does not govern the frequency here (a virtual machine, or the firmware"
            " does).",
        )
        return
    slow = [name for name in found if name != "performance"]
    sentence = f"CPU governor: {', '.join(found)}."
    fix = "sudo cpupower frequency-set -g performance"
    results.add("host.governor", "warn" if slow else "ok", sentence, found, fix=fix)


def swap(launch: checks.Launch, results: checks.Results) -> None:
    memory = meminfo(launch.root)
    used = memory["SwapTotal"] - memory["SwapFree"]
    most = results.threshold("host.swap", max(2**30, memory["MemTotal"] // 50))
    sentence = f"Swap in use: {used / 2**30:.1f} of {memory['SwapTotal'] / 2**30:.1f} GiB."
    fix = "sudo swapoff -a, and end what holds the memory"
    results.add(
        "host.swap", "warn" if used > most else "ok", sentence, used, fix=fix, threshold=most
    )


def reserved(launch: checks.Launch, results: checks.Results) -> None:
    memory = meminfo(launch.root)
    pages = memory.get("HugePages_Free", 0) * memory.get("Hugepagesize", 0)
    share = (pages + memory.get("SUnreclaim", 0)) / memory["MemTotal"]
    most = results.threshold("host.memory", 0.5)
    sentence = (
        f"Memory: {memory['MemTotal'] / 2**30:.1f} GiB, of which unused huge pages and the kernel"
        f" hold {share:.0%}."
    )
    state = "warn" if share > most else "ok"
    fix = "sudo sysctl vm.nr_hugepages=0; slabtop -o | head"
    results.add("host.memory", state, sentence, round(share, 3), fix=fix, threshold=most)
    checks.value("memory.total_bytes", str(memory["MemTotal"]))


def huge_pages(launch: checks.Launch, results: checks.Results) -> None:
    mode = kernel_files.chosen(launch.root, "/sys/kernel/mm/transparent_hugepage/enabled")
    results.add(
        "host.thp",
        "ok" if mode else "skip",
        (
            f"Transparent huge pages: {mode}."
            if mode
            else "This kernel has no transparent huge pages."
        ),
        mode,
    )
    checks.value("thp", mode)


def numa(launch: checks.Launch, results: checks.Results) -> None:
    nodes = kernel_files.matching(launch.root, "/sys/devices/system/node/node[0-9]*")
    empty = []
    for node in nodes:
        size = re.search(r"MemTotal:\s+(\d+)", kernel_files.read(launch.root, f"{node}/meminfo"))
        if size and int(size[1]) == 0 and kernel_files.line(launch.root, f"{node}/cpulist"):
            empty.append(os.path.basename(node))
    checks.value("numa.nodes", len(nodes))
    if len(nodes) < 2:
        results.add("host.numa", "skip", "This host has one NUMA node.", len(nodes))
        return
    balancing = kernel_files.line(launch.root, "/proc/sys/kernel/numa_balancing")
    sentence = (
        f"{', '.join(empty)} has CPUs and no memory"
        if empty
        else (
            f"{len(nodes)} NUMA nodes, all with memory; automatic balancing is"
            f" {'on' if balancing not in ('', '0') else 'off'}"
        )
    )
    state = "warn" if empty else "ok"
    fix = "sudo dmidecode -t memory: a lost DIMM, or a BIOS setting; drain the node"
    results.add("host.numa", state, f"NUMA: {sentence}.", [len(nodes), balancing], fix=fix)


def cpus_of(text: str) -> Set[int]:
    """`0-3,8` as a set."""
    found: Set[int] = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdecimal():
            found |= set(range(int(first), int(last or first) + 1))
    return found


def affinity(launch: checks.Launch, results: checks.Results) -> None:
    mine = os.sched_getaffinity(0)
    wrong: List[str] = []
    if len(mine) == 1 and launch.nproc > 1:
        wrong.append(f"all {launch.nproc} ranks are bound to CPU {min(mine)}")
    local = {
        os.path.basename(path): cpus_of(kernel_files.line(launch.root, f"{path}/local_cpulist"))
        for path in kernel_files.nvidia_gpus(launch.root)
    }
    remote = [name for name, cpus in local.items() if cpus and not cpus & mine]
    wrong += (
        [f"no usable CPU is near GPU {', '.join(remote[:8])}"]
        if remote and launch.nproc >= len(local)
        else []
    )
    fix = (
        "srun --cpu-bind=none, or --gpu-bind=closest with --cpus-per-task; torchrun"
        " --numa-binding=node"
    )
    sentence = f"Usable CPUs: {len(mine)}{'; ' + '; '.join(wrong) if wrong else ''}."
    results.add("host.affinity", "warn" if wrong else "ok", sentence, sorted(mine)[:512], fix=fix)
    checks.value("cpus", len(mine))
    checks.value(
        "cpu.model",
        next(
            iter(
                re.findall(
                    r"^model name\s*:\s*(.+)$",
                    kernel_files.read(launch.root, "/proc/cpuinfo"),
                    re.MULTILINE,
                )
            ),
            "",
        ),
    )


def virtualisation(launch: checks.Launch, results: checks.Results) -> None:
    flags = re.search(
        r"^flags\s*:.*\bhypervisor\b", kernel_files.read(launch.root, "/proc/cpuinfo"), re.MULTILINE
    )
    vendor = " ".join(
        filter(
            None,
            (
                kernel_files.line(launch.root, f"/sys/class/dmi/id/{name}")
                for name in ("sys_vendor", "product_name")
            ),
        )
    )
    kind = "a virtual machine" if flags else "bare metal, as far as the processor shows"
    translated = [
        path
        for path in kernel_files.matching(launch.root, "/sys/kernel/iommu_groups/*/type")
        if kernel_files.line(launch.root, path).startswith("DMA")
    ]
    slow = not flags and bool(translated) and len(kernel_files.nvidia_gpus(launch.root)) > 1
    sentence = (
        f"{kind}{f' ({vendor})' if vendor else ''}; IOMMU:"
        f" {'translates' if translated else 'off or passed through'}"
    )
    results.add(
        "host.virt",
        "warn" if slow else "ok",
        f"This host is {sentence}.",
        [bool(flags), vendor, len(translated)],
        fix=(
            "boot with iommu=pt, and switch PCIe ACS off in the BIOS: peer copies go through the"
            " root complex"
        ),
    )
    checks.value("product", vendor)
