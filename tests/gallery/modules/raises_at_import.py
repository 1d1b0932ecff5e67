"""A module made for an older release of one of its dependencies."""

import math


def choose_kernel() -> object:
    return math.fused_attention  # type: ignore[attr-defined]


KERNEL = choose_kernel()
