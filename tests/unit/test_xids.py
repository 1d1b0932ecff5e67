"""The XID table of the causes against that of the probe, which follows NVIDIA's catalogue."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from trainprobe.causes.xids import MEANS

FILE = Path(__file__).parents[2] / "probes" / "_devices" / "xids.py"
SPEC = importlib.util.spec_from_file_location("probe_xids", FILE)
assert SPEC is not None
assert SPEC.loader is not None
PROBE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(PROBE)

HARDWARE = {"gpu-fell-off-bus", "gpu-ecc-error", "gpu-kernel-hang"}


@pytest.mark.parametrize("code", sorted(MEANS))
def test_the_cause_of_an_xid_fits_the_action_that_nvidia_asks_for(code: int) -> None:
    cause, points, meaning = MEANS[code]
    action = PROBE.ACTIONS[code]

    if action in PROBE.BAD:
        assert cause in HARDWARE, "a reset mends no program"
    if action == PROBE.PROGRAM:
        assert cause == "illegal-memory-access" or "contained" in meaning
    if action == PROBE.IGNORE:
        assert points < 10, "NVIDIA asks for no action"
