"""What a site allows and what stands on the login node, as the look wrote it down. Every field
may be unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainprobe.sbatch import numbers

MOST_NODES = 20_000


@dataclass(frozen=True)
class Partition:
    """One partition. Times in minutes, memory in megabytes; None where it is not limited or not
    known.
    """

    name: str
    state: str = ""
    default: bool = False
    max_time: float | None = None
    default_time: float | None = None
    max_nodes: int | None = None
    mem_per_cpu: float | None = None
    mem_per_node: float | None = None
    max_mem_per_node: float | None = None
    exclusive: bool = False
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Node:
    """One node. `memory` in megabytes; `gpus` None where its Gres is not known."""

    name: str
    cpus: int | None = None
    memory: float | None = None
    gpus: int | None = None
    gpu_types: tuple[str, ...] = ()
    state: str = ""
    features: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        return not re.search(
            r"DOWN|DRAIN|FAIL|MAINT|NOT_RESPONDING|NO_RESPOND|POWERED_DOWN\b.*FAIL|\*",
            self.state.upper(),
        )


@dataclass(frozen=True)
class Site:
    """`version` such as (22, 5); `unknown` says what could not be asked, as sentences."""

    version: tuple[int, int] | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    partitions: tuple[Partition, ...] = ()
    nodes: tuple[Node, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        return bool(self.config or self.partitions or self.nodes)

    def partition(self, name: str) -> Partition | None:
        """The one of that name, the default one without a name, the first of several."""
        first = name.split(",", maxsplit=1)[0]
        if not name:
            return next((one for one in self.partitions if one.default), None)
        return next((one for one in self.partitions if one.name == first), None)

    def nodes_of(self, partition: Partition | None) -> tuple[Node, ...]:
        """The nodes of a partition; all of them without one."""
        if partition is None:
            return self.nodes if not self.partitions else ()
        names = set(partition.nodes)
        return tuple(node for node in self.nodes if node.name in names)

    def setting(self, name: str) -> str:
        value = self.config.get(name, "")
        return "" if value in ("(null)", "NONE", "N/A") else value


@dataclass(frozen=True)
class Here:
    """The login node. `limits` are the soft and hard limits of a process there, None for unlimited;
    `paths` what stands at each path: file, folder, missing, denied, or unknown where nobody could
    say in time; `programs` what a training script says of itself.
    """

    limits: Mapping[str, tuple[int | None, int | None]] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)
    programs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    cwd: str = ""
    home: str = ""
    host: str = ""


def partition_of(row: Mapping[str, str]) -> Partition:
    """Read one line of `scontrol show partition --oneliner`."""
    return Partition(
        name=row.get("PartitionName", "")[:100],
        state=row.get("State", ""),
        default=row.get("Default", "") == "YES",
        max_time=numbers.minutes(row.get("MaxTime", "")),
        default_time=numbers.minutes(row.get("DefaultTime", "")),
        max_nodes=numbers.whole(row.get("MaxNodes", "")),
        mem_per_cpu=numbers.megabytes(row.get("DefMemPerCPU", "")),
        mem_per_node=numbers.megabytes(row.get("DefMemPerNode", "")),
        max_mem_per_node=numbers.megabytes(row.get("MaxMemPerNode", "")),
        exclusive=row.get("OverSubscribe", "").upper().startswith("EXCLUSIVE"),
        nodes=numbers.hosts(row.get("Nodes", "")),
    )


def node_of(row: Mapping[str, str]) -> Node:
    """Read one line of `scontrol show node --oneliner`."""
    gres = row.get("Gres", "")
    return Node(
        name=row.get("NodeName", "")[:100],
        cpus=numbers.whole(row.get("CPUEfctv", "")) or numbers.whole(row.get("CPUTot", "")),
        memory=numbers.megabytes(row.get("RealMemory", "")),
        gpus=(numbers.gres_gpus(gres) or 0) if "Gres" in row else None,
        gpu_types=numbers.gres_types(gres),
        state=row.get("State", ""),
        features=tuple(
            one
            for one in re.split(r"[,&|]", row.get("AvailableFeatures", ""))
            if one and one != "(null)"
        ),
    )


def version_of(text: str) -> tuple[int, int] | None:
    found = re.search(r"(\d{2})\.(\d{2})", text[:200])
    return (int(found[1]), int(found[2])) if found else None
