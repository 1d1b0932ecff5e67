"""The request of the stress test, from flags or from the environment."""

from __future__ import annotations

import argparse
import os
from typing import NamedTuple, Tuple

import _emit

SUITES = ("shapes", "masks", "tying", "precision", "serialization", "fuzz", "throughput")
MOST_SEED = 2**31  # suites add to it, and numpy takes no more than 32 bits
RANKS = "ranks"  # one rank against N: an eighth line, no suite of its own


class StressRequest(NamedTuple):
    """`model` and `sample` as they were typed. `bench_steps` of throughput, `fuzz` configurations
    drawn by `seed`. `ranks` of the comparison with one.

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


def read_request() -> StressRequest:
    """Read the flags; the environment gives the defaults. An invalid value answers `cannot`."""
    parser = _emit.Parser()
    parser.text("--model", "TRAINPROBE_MODEL")
    parser.text("--sample", "TRAINPROBE_SAMPLE")
    device = os.environ.get("TRAINPROBE_DEVICE", "cpu")
    parser.add_argument("--device", default=device, choices=("cpu", "cuda"))
    parser.number("--bench-steps", "TRAINPROBE_BENCH_STEPS", 20, 1)
    parser.number("--fuzz", "TRAINPROBE_FUZZ", 12)
    parser.number("--seed", "TRAINPROBE_SEED", 0)
    parser.text("--suites", "TRAINPROBE_SUITES")
    parser.add_argument("--ranks", type=int, default=2)
    parser.seconds(300)
    parser.add_argument("--alone", default="", help=argparse.SUPPRESS)
    request = parser.parse_args()
    every = (*SUITES, RANKS)
    suites = tuple(item.strip() for item in request.suites.split(",") if item.strip()) or every
    for item in suites:
        if item not in every:
            sentence = f"There is no suite {item[:40]!r}; there are {', '.join(every)}."
            _emit.result("cannot", sentence)
    if not 0 <= request.seed < MOST_SEED:
        _emit.result("cannot", f"--seed {request.seed} is not between 0 and {MOST_SEED}.")
    if not request.model:
        _emit.result("cannot", "No model was named.")
    return StressRequest(
        request.model,
        request.sample,
        request.device,
        max(1, request.bench_steps),
        max(0, request.fuzz),
        request.seed,
        suites,
        max(2, request.ranks),
        request.timeout_s,
        request.alone,
    )
