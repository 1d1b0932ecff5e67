"""What a site allows and what the login node has, as recorded. Every field may be unknown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainprobe.sbatch import numbers

MOST_NODES = 20_000


@dataclass(frozen=True)
class Partition:
    """One partition. Times in minutes, memory in megabytes; None where there is no limit or it is
    not known.
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
    """`version` such as (22, 5); `unknown` holds a sentence for each answer that is missing."""

    version: tuple[int, int] | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    partitions: tuple[Partition, ...] = ()
    nodes: tuple[Node, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        return bool(self.config or self.partitions or self.nodes)

    def partition(self, name: str) -> Partition | None:
        """The partition of that name, the first of several names, or the default partition."""
        first = name.split(",", maxsplit=1)[0]
        return next(
            (row for row in self.partitions if (row.name == first if name else row.default)), None
        )

    def nodes_of(self, partition: Partition | None) -> tuple[Node, ...]:
        """The nodes of a partition; all nodes where the site has no partitions."""
        if partition is None:
            return self.nodes if not self.partitions else ()
        names = set(partition.nodes)
        return tuple(node for node in self.nodes if node.name in names)

    def setting(self, name: str) -> str:
        value = self.config.get(name, "")
        return "" if value in ("(null)", "NONE", "N/A") else value


@dataclass(frozen=True)
class LoginNode:
    """The login node. `limits` are the soft and hard limits of a process there, None for unlimited;
    `paths` the state of each path: file, folder, missing, denied, or unknown where the look timed
    out; `programs` what the source of each training script shows; `files` the texts of shell
    scripts that the batch script calls, by the names by which it calls them.
    """

    limits: Mapping[str, tuple[int | None, int | None]] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)
    programs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
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
    return Node(
        name=row.get("NodeName", "")[:100],
        cpus=numbers.whole(row.get("CPUEfctv", "")) or numbers.whole(row.get("CPUTot", "")),
        memory=numbers.megabytes(row.get("RealMemory", "")),
        gpus=(numbers.gres_gpus(row["Gres"]) or 0) if "Gres" in row else None,
        state=row.get("State", ""),
        features=tuple(
            name
            for name in re.split(r"[,&|]", row.get("AvailableFeatures", ""))
            if name not in ("", "(null)")
        ),
    )


def version_of(text: str) -> tuple[int, int] | None:
    found = re.search(r"(\d{2})\.(\d{2})", text[:200])
    return (int(found[1]), int(found[2])) if found else None
