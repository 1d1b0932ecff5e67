"""What the import rung wrote, as facts: how each import fared, what it needs of each rank, and
what the planned ranks would need.
"""

from __future__ import annotations

from typing import Any

import pytest

from trainprobe import causes
from trainprobe.causes.priors import load_priors
from trainprobe.causes.processes.import_storm import (
    each_bytes,
    limit_of,
    modules,
    need_bytes,
    ranks_at_once,
)
from trainprobe.causes.scene import Scene
from trainprobe.facts import Facts, HostCheck, ImportTried, read
from trainprobe.model.evidence import Evidence
from trainprobe.ranking import rank_group
from trainprobe.waits import SuspectGroup

MIB = 2**20
GROUP = SuspectGroup(
    cell="import_memory@1",
    probe="import_memory",
    ranks=(),
    how="failed-first",
    says="",
    mode="check",
    world_size=4,
)


def tried(module: str, how: str, outcome: str = "passed", **more: Any) -> dict[str, Any]:
    return {
        "event": "note" if outcome == "passed" else "fail",
        "name": "import",
        "module": module,
        "how": how,
        "outcome": outcome,
        "says": "",
        **more,
    }


def facts_of(*events: dict[str, Any]) -> Facts:
    rows = [
        {"at": 1.0, "seq": number, "rank": None, **event} for number, event in enumerate(events)
    ]
    return read([Evidence("E1", "probe.events", cell=GROUP.cell, data={"events": rows})])


LIMIT = {"event": "measure", "name": "limit.memory_bytes", "value": 1000 * MIB, "unit": "bytes"}
ALONE = (
    tried("light", "alone", rss_bytes=10 * MIB, peak_bytes=10 * MIB, private_bytes=6 * MIB),
    tried(
        "heavy",
        "alone",
        rss_bytes=12 * MIB,
        peak_bytes=412 * MIB,
        private_bytes=405 * MIB,
        compilers=2,
        build_bytes=95 * MIB,
    ),
    tried(
        "light,heavy",
        "whole",
        rss_bytes=13 * MIB,
        peak_bytes=414 * MIB,
        private_bytes=406 * MIB,
        build_bytes=94 * MIB,
    ),
)


def test_the_peak_without_shared_pages_and_the_compilers_count_for_each_rank() -> None:
    scene = Scene(facts_of(LIMIT, *ALONE), GROUP)
    assert [each_bytes(fact) // MIB for fact in scene.facts.of(ImportTried)] == [6, 500, 500]
    assert need_bytes(scene) == 4 * 500 * MIB
    assert modules(scene) == ("heavy",)
    limit = limit_of(scene)
    assert limit is not None
    assert limit[0] == 1000 * MIB


@pytest.mark.parametrize("planned", [False, True])
def test_the_storm_is_first_where_it_was_seen_or_is_foreseen(planned: bool) -> None:
    together = [tried("light,heavy", "together", rank=rank) for rank in range(4)]
    if planned:
        says = "8 ranks that import at once need 4000 MiB; the limit is 1000 MiB."
        together.append(
            {
                "event": "fail",
                "name": "import.foreseen",
                "says": says,
                "ranks": 8,
                "need_bytes": 4000 * MIB,
                "limit_bytes": 1000 * MIB,
            }
        )
    else:
        together[2:] = [
            tried("heavy", "together", "oom_killed", rank=2, cgroup_oom_rise=2),
            tried(
                "heavy",
                "together",
                "failed",
                rank=3,
                cgroup_oom_rise=2,
                error_type="RuntimeError",
                error="Error building extension 'heavy'",
            ),
        ]
    facts = facts_of(LIMIT, *ALONE, *together)
    assert ranks_at_once(Scene(facts, GROUP)) == (8 if planned else 4)
    first = rank_group(facts, GROUP, causes.built(), load_priors()).placed[0]
    assert (first.id, first.named) == ("import-storm", True)
    steps = [step for one in first.fixes for step in one.steps]
    assert any("with trainprobe.import_lock(): import heavy" in step for step in steps)
    assert any(step.startswith("MAX_JOBS=1 ") for step in steps)


def test_a_storm_that_was_measured_away_is_ruled_out() -> None:
    facts = facts_of(
        LIMIT, *ALONE, *[tried("light,heavy", "together", rank=rank) for rank in range(4)]
    )
    assert "import-storm" not in [
        placed.id for placed in rank_group(facts, GROUP, causes.built(), load_priors()).placed
    ]


def test_what_makes_a_fork_unsafe_is_a_check() -> None:
    check = {
        "event": "note",
        "check": "fork.threads_at_import",
        "status": "warn",
        "value": 3,
        "says": "`import outer` leaves 3 threads running",
        "module": "outer",
    }
    (found,) = facts_of(check).of(HostCheck)
    assert (found.name, found.status, found.value) == ("fork.threads_at_import", "warn", "3")


def test_signs_of_one_import_are_kept() -> None:
    row = tried(
        "a",
        "alone",
        threads_by={"inner": 3},
        cuda_by="b",
        lock_wait_s=1.5,
        lock_paths=["/x"],
        guarded=["a"],
    )
    (fact,) = facts_of(row).of(ImportTried)
    assert (fact.threads_by, fact.cuda_by, fact.lock_wait_s, fact.lock_paths, fact.guarded) == (
        {"inner": 3},
        "b",
        1.5,
        ("/x",),
        ("a",),
    )
