"""Processors and memory of the host: governor, NUMA, the CPUs that we may use, virtualisation, swap and huge pages."""

from __future__ import annotations

import os
import re
from typing import Dict, Iterator, List, Set

from _ready import checking, places

NVIDIA = "0x10de"


def meminfo(root: str) -> Dict[str, int]:
    """Bytes, and for huge pages their number."""
    found = re.findall(r"^(\w+):\s+(\d+)( kB)?", places.read(root, "/proc/meminfo"), re.MULTILINE)
    return {name: int(count) * (1024 if unit else 1) for name, count, unit in found}


def governor(asked: checking.Asked, told: checking.Told) -> None:
    files = places.found(asked.root, "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")
    found = sorted({places.line(asked.root, path) for path in files})
    checking.value("cpu.governor", " ".join(found))
    if not found:
        told.say("host.governor", "skip", "The kernel does not govern the frequency here (a virtual machine, or the firmware does).")
        return
    slow = [name for name in found if name != "performance"]
    told.say("host.governor", "warn" if slow else "ok", f"CPU governor: {', '.join(found)}.", found, fix="sudo cpupower frequency-set -g performance")


def swap(asked: checking.Asked, told: checking.Told) -> None:
    memory = meminfo(asked.root)
    used = memory["SwapTotal"] - memory["SwapFree"]
    most = told.threshold("host.swap", max(2**30, memory["MemTotal"] // 50))
    told.say(
        "host.swap",
        "warn" if used > most else "ok",
        f"Swap in use: {used / 2**30:.1f} of {memory['SwapTotal'] / 2**30:.1f} GiB.",
        used,
        fix="sudo swapoff -a, and end what holds the memory",
        threshold=most,
    )


def reserved(asked: checking.Asked, told: checking.Told) -> None:
    memory = meminfo(asked.root)
    pages = memory.get("HugePages_Free", 0) * memory.get("Hugepagesize", 0)
    share = (pages + memory.get("SUnreclaim", 0)) / memory["MemTotal"]
    most = told.threshold("host.memory", 0.5)
    says = f"Memory: {memory['MemTotal'] / 2**30:.1f} GiB, of which unused huge pages and the kernel hold {share:.0%}."
    told.say("host.memory", "warn" if share > most else "ok", says, round(share, 3), fix="sudo sysctl vm.nr_hugepages=0; slabtop -o | head", threshold=most)
    checking.value("memory.total_bytes", str(memory["MemTotal"]))


def huge_pages(asked: checking.Asked, told: checking.Told) -> None:
    mode = places.chosen(asked.root, "/sys/kernel/mm/transparent_hugepage/enabled")
    told.say("host.thp", "ok" if mode else "skip", f"Transparent huge pages: {mode}." if mode else "This kernel has no transparent huge pages.", mode)
    checking.value("thp", mode)


def numa(asked: checking.Asked, told: checking.Told) -> None:
    nodes = places.found(asked.root, "/sys/devices/system/node/node[0-9]*")
    empty = []
    for node in nodes:
        size = re.search(r"MemTotal:\s+(\d+)", places.read(asked.root, f"{node}/meminfo"))
        if size and int(size[1]) == 0 and places.line(asked.root, f"{node}/cpulist"):
            empty.append(os.path.basename(node))
    checking.value("numa.nodes", len(nodes))
    if len(nodes) < 2:
        told.say("host.numa", "skip", "This host has one NUMA node.", len(nodes))
        return
    balancing = places.line(asked.root, "/proc/sys/kernel/numa_balancing")
    says = (
        f"{', '.join(empty)} has CPUs and no memory"
        if empty
        else f"{len(nodes)} NUMA nodes, all with memory; automatic balancing is {'on' if balancing not in ('', '0') else 'off'}"
    )
    told.say(
        "host.numa",
        "warn" if empty else "ok",
        f"NUMA: {says}.",
        [len(nodes), balancing],
        fix="sudo dmidecode -t memory: a lost DIMM, or a BIOS setting; drain the node",
    )


def cpus_of(text: str) -> Set[int]:
    """`0-3,8` as a set."""
    found: Set[int] = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdigit():
            found |= set(range(int(first), int(last or first) + 1))
    return found


def gpus(root: str) -> Iterator[str]:
    """PCI addresses of NVIDIA's display and 3D controllers."""
    for path in places.found(root, "/sys/bus/pci/devices/*"):
        if places.line(root, f"{path}/vendor") == NVIDIA and places.line(root, f"{path}/class")[:6] in ("0x0300", "0x0302"):
            yield path


def affinity(asked: checking.Asked, told: checking.Told) -> None:
    mine = os.sched_getaffinity(0)
    wrong: List[str] = []
    if len(mine) == 1 and asked.nproc > 1:
        wrong.append(f"all {asked.nproc} ranks are bound to CPU {min(mine)}")
    local = {os.path.basename(path): cpus_of(places.line(asked.root, f"{path}/local_cpulist")) for path in gpus(asked.root)}
    far = [name for name, cpus in local.items() if cpus and not cpus & mine]
    wrong += [f"no CPU that we may use is near GPU {', '.join(far[:8])}"] if far and asked.nproc >= len(local) else []
    fix = "srun --cpu-bind=none, or --gpu-bind=closest with --cpus-per-task; torchrun --numa-binding=node"
    told.say(
        "host.affinity", "warn" if wrong else "ok", f"CPUs that we may use: {len(mine)}{'; ' + '; '.join(wrong) if wrong else ''}.", sorted(mine)[:512], fix=fix
    )
    checking.value("cpus", len(mine))
    checking.value("cpu.model", next(iter(re.findall(r"^model name\s*:\s*(.+)$", places.read(asked.root, "/proc/cpuinfo"), re.MULTILINE)), ""))


def virtualisation(asked: checking.Asked, told: checking.Told) -> None:
    flags = re.search(r"^flags\s*:.*\bhypervisor\b", places.read(asked.root, "/proc/cpuinfo"), re.MULTILINE)
    vendor = " ".join(filter(None, (places.line(asked.root, f"/sys/class/dmi/id/{name}") for name in ("sys_vendor", "product_name"))))
    kind = "a virtual machine" if flags else "bare metal, as far as the processor tells"
    translated = [path for path in places.found(asked.root, "/sys/kernel/iommu_groups/*/type") if places.line(asked.root, path).startswith("DMA")]
    slow = not flags and bool(translated) and len(list(gpus(asked.root))) > 1
    says = f"{kind}{f' ({vendor})' if vendor else ''}; IOMMU: {'translates' if translated else 'off or passed through'}"
    told.say(
        "host.virt",
        "warn" if slow else "ok",
        f"This host is {says}.",
        [bool(flags), vendor, len(translated)],
        fix="boot with iommu=pt, and switch PCIe ACS off in the BIOS: peer copies go through the root complex",
    )
    checking.value("product", vendor)
