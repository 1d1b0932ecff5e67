"""docs/isolation.md, from the invented clusters of tests/gallery/isolation and the figures of
real hosts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainprobe.isolation.peers import FEW, TOLERANCES
from trainprobe.isolation.trials import HOWS

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "gallery" / "isolation"
RESULTS, LIVE = FOLDER / "results.json", FOLDER / "live.json"
SHOWN = (4, 8, 16, 32, 64, 256, 512, 1024)
METHODS = {
    "quick": "ours, quick",
    "standard": "ours, standard",
    "deep": "ours, deep",
    "dlrover": "DLRover's rule",
    "bisection": "bisection",
}
INTRO = """# Finding the bad node or link

Where nodes fail together, the failing one is looked for by small groups with real traffic. `trainprobe ready` does so over the nodes of an allocation.

## How it is done

1. All nodes in disjoint pairs at once; of an odd number one group has three. Who passes is good.
2. Who failed is tried with a partner that is good. Who fails with two good partners is named; who passes is let off.
3. Two that fail with each other and are both good with others are tried once more. A second failure makes it the link; a pass is told as seen once.
   Where the one has a wrong address for the other, whom others reach, that one is named and not the link.
4. Where no pair passes, others meet others, up to three times, before it is called a common cause. Two camps that never pass across are told as such.
5. Then the other neighbours of the ring, and as many more rounds as the budget allows: a bad link shows only where its two ends meet. Of {few} nodes or fewer all meet, where time is left.
6. What fails in NCCL is tried in gloo, what fails in gloo by plain TCP: so the fabric is told from the host.
7. Where all pairs pass and the whole fails: groups of 2, 4 … all, the smallest that fails, and then members changed for others at that size, half of them at a time.

A node is named only for failures with partners that are good without it, so no node is blamed for its partner. Of two nodes alone neither is named.
A try that could not be made counts for nothing, and a node whose part never started is named only after it stayed silent twice while others passed.

Slow is what is slow beside the other pairs of the same run: beyond their median by three median absolute deviations and at least {nccl:.0%} with NCCL, {gloo:.0%} with gloo,
{tcp:.0%} of the time of plain TCP, which Python moves. With fewer than {few} pairs to compare, seven times the best (with gloo five times, with NCCL twice).
Plain TCP is measured up to 250 Mbit/s only, so that it burdens nobody: it tells a crippled link, not a fast one from a faster.

What a failure looked like is one word: {hows}.

## Invented clusters

The same draws of faults for each method, and the same luck for the same try. *Right* is exactly the faulty nodes and links and nothing else, *missed* that one of them was not named,
*wrong* that a healthy node or link was blamed. A round is what runs at the same time. Wall time is in tests of one pair; a test that hangs is ended after three.
DLRover's rule is two rounds, neighbours and then the fastest with the slowest, where who failed in both is bad; it gives up below four nodes. Bisection is plain:
halves of what fails, and a good partner for the last two. Both know no links and no sizes, and DLRover's misses a node that is less than twice as slow as the median.
A node *at scale* fails in any group from some size on; *size alone* is any group of that size. For those the tool climbs after its pairs, as it does where the whole job fails.
`deep` was drawn to {deep} nodes.

"""
LIVE_INTRO = """
## Real hosts

Four hosts (network namespaces on one machine of two cores, at a load of 12 to 24), plain TCP, budget quick. *Right* is the one node or link with the right word.
Three of the runs with nothing planted had one pair that failed once, and nobody was blamed. The row marked *before* holds two wrong names: a node with one dead way failed beside it
with another partner, too, on the busy machine. Since then two failures count together only when they are of one sort.

| planted | runs | right | somebody else blamed | rounds | seconds, median | longest |
|---|---|---|---|---|---|---|
"""
HEAD = (
    "| nodes | method | draws | right | missed | wrong | rounds | tests | wall"
    " |\n|---|---|---|---|---|---|---|---|---|\n"
)


def pages() -> Iterator[tuple[str, str]]:
    """Give the page."""
    rows: Sequence[Mapping[str, Any]] = json.loads(RESULTS.read_text(encoding="utf-8"))["rows"]
    shares = {
        arm: TOLERANCES[key].share
        for arm, key in (
            ("tcp", ("tcp", "mbps")),
            ("gloo", ("gloo", "took_ms")),
            ("nccl", ("nccl", "took_ms")),
        )
    }
    deep = max(row["nodes"] for row in rows if row["method"] == "deep")
    text = INTRO.format(few=FEW, hows=", ".join(HOWS), deep=deep, **shares) + _summary(rows)
    for kind in dict.fromkeys(row["kind"] for row in rows):
        text += f"\n### {kind.capitalize()}\n\n{HEAD}" + "".join(
            _row(row) for row in rows if row["kind"] == kind and row["nodes"] in SHOWN
        )
    yield "isolation.md", text + _live()


def _summary(rows: Sequence[Mapping[str, Any]]) -> str:
    drawn = {method: [row for row in rows if row["method"] == method] for method in METHODS}
    text = (
        "Over all kinds and sizes together:\n\n| method | draws | right | missed | wrong"
        " |\n|---|---|---|---|---|\n"
    )
    for method, found in drawn.items():
        draws = sum(row["draws"] for row in found)
        shares = [
            sum(row[name] * row["draws"] for row in found) / draws
            for name in ("right", "missed", "wrong")
        ]
        text += (
            f"| {METHODS[method]} | {draws} | {' | '.join(f'{share:.1%}' for share in shares)} |\n"
        )
    return text


def _row(row: Mapping[str, Any]) -> str:
    shares = " | ".join(f"{row[name]:.0%}" for name in ("right", "missed", "wrong"))
    return (
        f"| {row['nodes']} | {METHODS[row['method']]} | {row['draws']} | {shares} |"
        f" {row['rounds']:.1f} | {row['tests']:.0f} | {row['wall']:.1f} |\n"
    )


def _live() -> str:
    found: Sequence[Mapping[str, Any]] = json.loads(LIVE.read_text(encoding="utf-8"))["rows"]
    return LIVE_INTRO + "".join(
        f"| {row['planted']} | {row['runs']} | {row['right']} | {row['wrong']} |"
        f" {row['rounds']:.1f} | {row['median_s']:.0f} | {row['longest_s']:.0f} |\n"
        for row in found
    )
