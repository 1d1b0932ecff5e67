"""The time and memory of one report over 256 nodes of eight ranks, one of which is stuck; fails
over its limits or where another rank is blamed.

python tests/bench/gather.py [--nodes 256] [--stuck 1301] [--keep DIR]

Local processes stand in for the nodes: `attach --hosts` asks each by a program in place of ssh,
which prints an answer. The answers are made from those that three real hosts of one hung job gave
(recorded/), with hosts, addresses, ranks and process numbers renumbered. So what is measured is the
asking of many, the reading of what they say, and the report; not SLURM, not ssh, not the looks on
the nodes.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainprobe.model.record_classes import classes_of

LIMIT_S, LIMIT_MB = 30.0, 200.0
RECORDED = Path(__file__).with_name("recorded")
ROOT = Path(__file__).resolve().parents[2]
EACH, THREE = 8, 3
SICK_NODE, SICK_RANK = 3, 20  # of the recorded ones
ADDRESS = re.compile(r"10\.213\.115\.([123])(?=:|\b)")
NODE = re.compile(r"\bnode([123])\b")
STANDS_IN = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
exec cat "{folder}/$2.jsonl"
"""


@dataclass(frozen=True)
class Gathered:
    """One report: seconds from start to end and of processor time, with the stand-ins; the largest
    resident set of the tool in MB; and what it says.
    """

    took_s: float
    cpu_s: float
    peak_mb: float
    report: dict[str, Any]


def recorded(number: int) -> list[dict[str, Any]]:
    with lzma.open(RECORDED / f"node{number}.jsonl.xz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


class Node:
    """Node `place` of `count`, made of a recorded one. Three neighbours keep the connections
    that the recorded three had among each other.
    """

    def __init__(self, place: int, count: int, stuck: int) -> None:
        self.place, self.count = place, count
        sick = place == stuck // EACH
        self.of = SICK_NODE if sick else place % (SICK_NODE - 1) + 1
        self.first = (self.of - 1) * EACH
        self.turn = (
            stuck % EACH - SICK_RANK % EACH if sick else 0
        )  # so that the stuck one has the place that was asked for

    @property
    def name(self) -> str:
        return name(self.place)

    def rows(self, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for row in rows:
            yield self._mapped(row, "")

    def _mapped(self, value: Any, key: str) -> Any:
        if isinstance(value, dict):
            return {self._key(one, key): self._mapped(item, one) for one, item in value.items()}
        if isinstance(value, list):
            return [self._mapped(item, key) for item in value]
        if isinstance(value, str):
            if key in ("SLURM_PROCID", "SLURM_NODEID", "SLURM_NTASKS", "SLURM_NNODES"):
                whole = {
                    "SLURM_PROCID": self._rank(int(value)),
                    "SLURM_NODEID": self.place,
                    "SLURM_NTASKS": self.count * EACH,
                    "SLURM_NNODES": self.count,
                }
                return str(whole[key])
            return ADDRESS.sub(
                self._address, NODE.sub(lambda found: name(self._neighbour(int(found[1]))), value)
            )
        if not isinstance(value, int) or isinstance(value, bool):
            return value
        return self._number(value, key)

    def _number(self, value: int, key: str) -> int:
        if key in ("world_size", "nnodes"):
            return self.count * (EACH if key == "world_size" else 1)
        if key == "rank" or (key.endswith("_rank") and key != "local_rank"):
            return self._rank(value)
        named = key in ("pid", "ppid", "os_thread_id", "tid", "used_by") or key.endswith("_pid")
        return value + 7 * self.place if named and value > 1 else value

    def _key(self, key: str, of: str) -> str:
        return str(self._rank(int(key))) if of == "environment" and key.isdigit() else key

    def _rank(self, rank: int) -> int:
        node, seat = divmod(rank, EACH)
        seat = (seat + self.turn) % EACH if node == self.of - 1 else seat
        return self._neighbour(node + 1) * EACH + seat

    def _neighbour(self, number: int) -> int:
        """Where the recorded node `number` stands, as this node sees it."""
        return (self.place + number - self.of) % self.count

    def _address(self, found: re.Match[str]) -> str:
        place = self._neighbour(int(found[1]))
        return f"10.7.{place // 250}.{place % 250 + 1}"


def name(place: int) -> str:
    return f"node{place + 1:04d}"


def made(folder: Path, count: int, stuck: int) -> None:
    """Write the answers of `count` nodes into `folder`, rank `stuck` of them waiting for a lock,
    and the program that hands them out.
    """
    templates = {number: recorded(number) for number in range(1, THREE + 1)}
    for place in range(count):
        node = Node(place, count, stuck)
        first, *rows, last = node.rows(templates[node.of])
        text = "".join(json.dumps(row) + "\n" for row in (first, *classes_of(rows), last))
        (folder / f"{node.name}.jsonl").write_text(
            text.replace(f'"now": {templates[node.of][-1]["now"]}', f'"now": {time.time()}'),
            encoding="utf-8",
        )
    program = folder / "stands-in"
    program.write_text(STANDS_IN.format(folder=folder), encoding="ascii")
    program.chmod(0o755)


def gathered(folder: Path, count: int) -> Gathered:
    """One `attach` over all of them, in a process of its own."""
    told = folder / "report.json"
    hosts = f"node[0001-{count:04d}]"
    argv = [
        sys.executable,
        "-m",
        "trainprobe",
        "attach",
        "--hosts",
        hosts,
        "--case",
        str(folder / "case"),
        "--json",
        str(told),
        "--quiet",
    ]
    env = {**os.environ, "TRAINPROBE_SSH": str(folder / "stands-in"), "PYTHONPATH": str(ROOT)}
    began = time.monotonic()
    with (folder / "said").open("wb") as said:
        child = subprocess.Popen(argv, env=env, cwd=ROOT, stdout=said, stderr=said)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    took_s = time.monotonic() - began
    if not told.exists():
        raise SystemExit(
            f"attach ended with {child.returncode}: {(folder / 'said').read_text()[-2000:]}"
        )
    cpu_s = used.ru_utime + used.ru_stime
    return Gathered(
        took_s, cpu_s, used.ru_maxrss / 1000, json.loads(told.read_text(encoding="utf-8"))
    )


def wrong(found: Gathered, count: int, stuck: int) -> str:
    """What is wrong with the report, empty where it is right."""
    first = found.report["causes"][0] if found.report["causes"] else {}
    said = (
        found.report["verdict"],
        first.get("id"),
        first.get("named"),
        first.get("ranks"),
        first.get("hosts"),
        len(found.report["world"]["ranks"]),
    )
    want = ("hung", "file-lock-held", True, [stuck], [name(stuck // EACH)], count * EACH)
    return "" if said == want else f"the report says {said} and not {want}"


def main() -> int:
    words = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    words.add_argument("--nodes", type=int, default=256)
    words.add_argument("--stuck", type=int, default=1301)
    words.add_argument(
        "--keep", type=Path, help="a folder for the answers and the case, which stay"
    )
    given = words.parse_args()
    with tempfile.TemporaryDirectory(prefix="gather-") as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        made(folder, given.nodes, given.stuck)
        found = gathered(folder, given.nodes)
    what = f"{given.nodes} nodes, {given.nodes * EACH} ranks"
    print(
        f"{what}: {found.took_s:.1f} s (limit {LIMIT_S:g}; {found.cpu_s:.1f} s of"
        f" processor time), {found.peak_mb:.0f} MB (limit"
        f" {LIMIT_MB:g}); local processes stood in for the nodes"
    )
    amiss = wrong(found, given.nodes, given.stuck)
    if amiss:
        print(amiss)
    return 1 if amiss or found.took_s > LIMIT_S or found.peak_mb > LIMIT_MB else 0


if __name__ == "__main__":
    sys.exit(main())
