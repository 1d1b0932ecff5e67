"""CPU quotas of cgroup version 2, from a tree of files: this machine has version 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.probes.conftest import PROBES


@pytest.fixture
def readiness(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(PROBES))
    from _host import launch_limits  # as the program does

    monkeypatch.setenv("TRAINPROBE_SLOT", "step")
    return launch_limits


@pytest.mark.parametrize(
    ("upper", "lower", "ranks", "status", "value"),
    [
        ("max 100000", "max 100000", 1, "ok", None),
        ("150000 100000", "max 100000", 1, "warn", 1.5),
        ("150000 100000", "20000 100000", 1, "fail", 0.2),  # the least up the tree counts
        ("20000 100000", "800000 100000", 1, "fail", 0.2),
        ("150000 100000", "max 100000", 2, "fail", 1.5),
        ("nonsense", "", 1, "ok", None),
    ],
)
def test_the_least_quota_up_the_tree_counts(
    upper: str,
    lower: str,
    ranks: int,
    status: str,
    value: float | None,
    readiness: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    below = tmp_path / "job"
    below.mkdir()
    (tmp_path / "cpu.max").write_text(upper)
    (below / "cpu.max").write_text(lower)
    (below / "cpu.stat").write_text("nr_periods 100\nnr_throttled 80\n")
    monkeypatch.setattr(readiness, "cgroup_folders", lambda _: iter([str(below), str(tmp_path)]))
    monkeypatch.setattr(readiness.os, "sched_getaffinity", lambda _: set(range(8)))
    ((name, said, found, says, _),) = readiness.quota(ranks)
    assert (name, said) == ("lim.cgcpu", status)
    assert (found[0] if found else None) == value
    assert ("80%" in says) == (lower.startswith("20000"))


def test_a_site_and_a_ladder_ask_for_less(
    readiness: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpu.max").write_text("50000 100000")
    monkeypatch.setattr(readiness, "cgroup_folders", lambda _: iter([str(tmp_path)]))
    assert next(readiness.quota(1))[1] == "fail"
    monkeypatch.setenv("TRAINPROBE_THRESHOLDS", '{"lim.cgcpu": 0.5}')
    assert next(readiness.quota(1))[1] == "warn"
    monkeypatch.delenv("TRAINPROBE_THRESHOLDS")
    monkeypatch.delenv("TRAINPROBE_SLOT")
    assert next(readiness.quota(1))[1] == "warn"  # on the ladder ranks are few and short


@pytest.mark.parametrize(
    ("world", "nodes", "least"),
    [("", "", 64), ("8", "a", 64), ("4", "a,b", 1024), ("16", "", 1024), ("64", "a,b", 1025)],
)
def test_open_files_follow_the_planned_world(
    world: str, nodes: str, least: int, readiness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINPROBE_WORLD", world)
    monkeypatch.setenv("TRAINPROBE_NODES", nodes)
    assert readiness.least_files() == least


@pytest.mark.parametrize(
    ("state", "layer", "gpus", "locks"),
    [
        ("4: ACTIVE", "InfiniBand", 0, True),
        ("1: DOWN", "InfiniBand", 1, False),
        ("4: ACTIVE", "Ethernet", 0, False),
        ("4: ACTIVE", "Ethernet", 1, True),
    ],
)
def test_memory_is_locked_for_infiniband_and_for_nccl(
    state: str, layer: str, gpus: int, locks: bool, readiness: Any, tmp_path: Path
) -> None:
    port = tmp_path / "sys/class/infiniband/mlx5_0/ports/1"
    port.mkdir(parents=True)
    (port / "state").write_text(state)
    (port / "link_layer").write_text(layer)
    (tmp_path / "dev").mkdir()
    for place in range(gpus):
        (tmp_path / "dev" / f"nvidia{place}").touch()
    assert readiness.active_rdma(str(tmp_path)) is locks
