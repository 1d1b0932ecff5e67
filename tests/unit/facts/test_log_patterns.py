"""No line drives a pattern of the log readers into more than linear trouble."""

from __future__ import annotations

import re
import time
from types import ModuleType

import pytest

from trainprobe.facts import (
    failure_wording,
    log_endings,
    log_exceptions,
    log_jobs,
    log_rows,
    log_stacks,
    sacct_tables,
)
from trainprobe.stacks import faulthandler_text, traceback_forms, traceback_text
from trainprobe.waits import unfailed_logs

MODULES = (
    log_endings,
    log_exceptions,
    log_jobs,
    log_rows,
    log_stacks,
    failure_wording,
    sacct_tables,
    faulthandler_text,
    traceback_forms,
    traceback_text,
    unfailed_logs,
)
SEEDS = (
    "worker exit ",
    "rank 1 exited with ",
    "[Rank 1",
    "[PG 0 ",
    "--local_rank=1 ",
    "A.",
    "(",
    "File ",
    "Killed ",
    "world_size: ",
    "done 1 ",
    "epoch 1 ",
    "\u2502 /a:1 in ",
    "x:1:",
    "Error",
    "srun: error: n: tasks 1,2",
    "process 1 ",
    "-",
    " ",
    "=",
    "WARN",
    "a.b.c.",
    "Traceback (most recent call last)",
    "/a in b(",
)
LINE = 2000  # as many characters of a line are kept


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_patterns_take_little_time_on_any_line(module: ModuleType) -> None:
    patterns = {
        name: value for name, value in vars(module).items() if isinstance(value, re.Pattern)
    }
    assert patterns
    for name, pattern in patterns.items():
        for seed in SEEDS:
            text = (seed * LINE)[:LINE]
            began = time.process_time()
            pattern.search(text)
            assert time.process_time() - began < 0.3, (name, seed)
