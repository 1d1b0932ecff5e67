"""Listings of processes beside a log: who has ended, and who lives on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.facts.test_log_facts import facts_of
from tests.unit.waits.test_logged import explained
from trainprobe.facts.process_listings import ChildrenGone

FOREST = r"""  700 slurm_script
  710  \_ python3
  731      \_ python3 <defunct>
  732      \_ python3
  741      |   \_ pt_data_worker
  742      |   \_ pt_data_worker
  733      \_ python3 <defunct>
"""
FULL = """UID          PID    PPID  C STIME TTY          TIME CMD
ada          710     700  0 10:02 ?        00:00:01 /opt/bin/python3 -m torch.distributed.run fit.py
ada          731     710  0 10:02 ?        00:00:01 [python3] <defunct>
ada          732     710 99 10:02 ?        00:09:01 /opt/bin/python3 fit.py
ada          733     710  0 10:02 ?        00:00:01 [python3] <defunct>
"""


@pytest.mark.parametrize("text", [FOREST, FULL], ids=["forest", "full"])
def test_children_that_have_ended_are_told_from_those_that_live(text: str) -> None:
    (found,) = facts_of(*text.splitlines()).of(ChildrenGone)
    assert (found.parent, found.program) == (710, "python3")
    assert (found.gone, found.alive) == ((731, 733), (732,))


@pytest.mark.parametrize("text", [FOREST, FULL], ids=["forest", "full"])
def test_who_lives_on_without_its_siblings_hangs(text: str, tmp_path: Path) -> None:
    report = explained({"job.log": f"step 7 loss 0.3\n{text}"}, tmp_path)
    assert report.verdict == "hung"
    assert "2 of 3 processes of python3 below pid 710 have ended" in report.says
    assert "pid 732 lives on" in report.says


def test_a_tree_of_which_all_live_or_all_have_ended_tells_nothing() -> None:
    assert not facts_of(*FOREST.replace(" <defunct>", "").splitlines()).of(ChildrenGone)
    ended = [line for line in FOREST.splitlines() if "732" not in line and "worker" not in line]
    assert not facts_of(*ended).of(ChildrenGone)
