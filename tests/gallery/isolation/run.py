"""The table of docs/isolation.md: every method on the same draws of every kind of fault, from 2 to
1,024 nodes.

    python -m tests.gallery.isolation.run [--draws N] [--least NODES] [--most NODES]

Writes results.json beside this file, which is all that the page is made from. It draws with fixed
seeds: the same numbers come out each time.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.gallery.isolation.methods import Blame, bisection, dlrover, ours
from tests.gallery.isolation.worlds import KINDS, World, world
from trainprobe.isolation import Plan
from trainprobe.ready.isolate import plan_of

RESULTS = Path(__file__).with_name("results.json")
SIZES = (2, 3, 4, 5, 8, 16, 32, 64, 128, 256, 512, 1024)
LARGEST_DEEP = 32  # hundreds of rounds of pairs: half an hour is for few nodes
AT_SCALE = ("node at scale", "size alone")


def plan(budget: str, kind: str, nodes: int) -> Plan:
    """What the tool plans for this budget; growing groups where the whole job was seen to fail
    though its pairs pass.
    """
    made = plan_of(budget, "nccl", nodes)
    return Plan(
        "nccl",
        control=False,
        breadth=made.breadth,
        repeats=made.repeats,
        again=made.again,
        ladder=kind in AT_SCALE,
    )


METHODS: Mapping[str, Callable[[World, str], Blame]] = {
    "quick": lambda made, kind: ours(made, plan("quick", kind, len(made.nodes))),
    "standard": lambda made, kind: ours(made, plan("standard", kind, len(made.nodes))),
    "deep": lambda made, kind: ours(made, plan("deep", kind, len(made.nodes))),
    "dlrover": lambda made, _: dlrover(made),
    "bisection": lambda made, _: bisection(made),
}


def score(made: World, blame: Blame) -> tuple[bool, bool, bool]:
    """Right, missed something, blamed a healthy node or link. A link of a bad node is no fault
    of its own, nor healthy.
    """
    nodes = made.bad | made.slow | made.late
    links = {link for link in made.links if not link & nodes}
    wrong_links = {link for link in blame.links if link not in made.links and not link & nodes}
    wrong = bool(blame.nodes - nodes or wrong_links)
    missed = bool(
        nodes - blame.nodes or links - blame.links or (made.size_alone and blame.size != made.size)
    )
    return not wrong and not missed, missed, wrong


def cell(kind: str, nodes: int, method: str, draws: int) -> dict[str, Any] | None:
    """All draws of one kind, size and method; shares from 0 to 1, means of rounds, tests and
    wall time (in pair tests).
    """
    if world(kind, nodes, 0) is None:
        return None
    right = missed = wrong = shared = rounds = tests = 0
    wall = 0.0
    for draw in range(draws):
        made = world(kind, nodes, draw)
        assert made is not None
        blame = METHODS[method](made, kind)
        told = score(made, blame)
        right, missed, wrong = right + told[0], missed + told[1], wrong + told[2]
        shared, rounds, tests, wall = (
            shared + blame.shared,
            rounds + made.rounds,
            tests + made.tests,
            wall + made.wall,
        )
    shares = {
        "right": right / draws,
        "missed": missed / draws,
        "wrong": wrong / draws,
        "shared": shared / draws,
    }
    means = {"rounds": rounds / draws, "tests": tests / draws, "wall": wall / draws}
    return {
        "kind": kind,
        "nodes": nodes,
        "method": method,
        "draws": draws,
        **{name: round(value, 3) for name, value in (shares | means).items()},
    }


def main(arguments: list[str]) -> int:
    """Draw, count and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--most", type=int, default=max(SIZES))
    parser.add_argument(
        "--least", type=int, default=0, help="keep the rows of smaller sizes as they are"
    )
    asked = parser.parse_args(arguments)
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))["rows"] if asked.least else []
    rows = [row for row in kept if not asked.least <= row["nodes"] <= asked.most]
    for nodes in (size for size in SIZES if asked.least <= size <= asked.most):
        began = time.monotonic()
        methods = [name for name in METHODS if name != "deep" or nodes <= LARGEST_DEEP]
        rows += [
            row
            for kind in KINDS
            for method in methods
            if (row := cell(kind, nodes, method, asked.draws))
        ]
        sys.stderr.write(
            f"{nodes} nodes: {asked.draws} draws of each kind, {time.monotonic() - began:.0f} s\n"
        )
        RESULTS.write_text(
            json.dumps(
                {
                    "rows": sorted(
                        rows,
                        key=lambda row: (
                            KINDS.index(row["kind"]),
                            row["nodes"],
                            list(METHODS).index(row["method"]),
                        ),
                    )
                },
                separators=(",", ":"),
            ).replace('{"kind"', '\n{"kind"')
            + "\n",
            encoding="utf-8",
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
