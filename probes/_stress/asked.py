"""What was asked of the stress test, from flags or from the environment."""

from __future__ import annotations

import argparse
import os
from typing import NamedTuple, Tuple

import _emit

SUITES = ("shapes", "masks", "tying", "precision", "serialization", "fuzz", "throughput")
MOST_SEED = 2**31  # suites add to it, and numpy takes no more than 32 bits
RANKS = "ranks"  # one rank against N: an eighth line, no suite of its own


class Asked(NamedTuple):
    """`model` and `sample` as they were typed. `bench_steps` of throughput, `fuzz` configurations drawn by `seed`. `ranks` of the comparison with one.

    `alone` is the path that a fresh child writes to, which is started with one suite.
    """

    model: str
    sample: str
    device: str
    bench_steps: int
    fuzz: int
    seed: int
    suites: Tuple[str, ...]
    ranks: int
    timeout_s: float
    alone: str = ""


def asked() -> Asked:
    """Read the flags; what was not typed comes from the environment. A word that is none answers `cannot`."""
    number = _emit.number_from_environment
    parser = _emit.Parser()
    parser.add_argument("--model", default=os.environ.get("TRAINPROBE_MODEL", ""))
    parser.add_argument("--sample", default=os.environ.get("TRAINPROBE_SAMPLE", ""))
    parser.add_argument("--device", default=os.environ.get("TRAINPROBE_DEVICE", "cpu"), choices=("cpu", "cuda"))
    parser.add_argument("--bench-steps", type=int, default=number("TRAINPROBE_BENCH_STEPS", 20, 1))
    parser.add_argument("--fuzz", type=int, default=number("TRAINPROBE_FUZZ", 12, 0))
    parser.add_argument("--seed", type=int, default=number("TRAINPROBE_SEED", 0, 0))
    parser.add_argument("--suites", default=os.environ.get("TRAINPROBE_SUITES", ""), help="some of " + ",".join((*SUITES, RANKS)))
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--timeout-s", type=float, default=_seconds(os.environ.get("TRAINPROBE_DEADLINE_S", "")))
    parser.add_argument("--alone", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    suites = tuple(one.strip() for one in given.suites.split(",") if one.strip()) or (*SUITES, RANKS)
    for one in suites:
        if one not in (*SUITES, RANKS):
            _emit.result("cannot", f"There is no suite {one[:40]!r}; there are {', '.join((*SUITES, RANKS))}.")
    if not 0 <= given.seed < MOST_SEED:
        _emit.result("cannot", f"--seed {given.seed} is not between 0 and {MOST_SEED}.")
    if not given.model:
        _emit.result("cannot", "No model was named.")
    return Asked(
        given.model,
        given.sample,
        given.device,
        max(1, given.bench_steps),
        max(0, given.fuzz),
        given.seed,
        suites,
        max(2, given.ranks),
        given.timeout_s,
        given.alone,
    )


def _seconds(text: str) -> float:
    try:
        return float(text) if text.strip() else 300.0
    except ValueError:
        _emit.result("cannot", f"TRAINPROBE_DEADLINE_S={text!r} is not a number.")
