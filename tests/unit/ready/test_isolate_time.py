"""How long pairs are tried: time is kept for what comes after, until something fails."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainprobe.case import Case
from trainprobe.model.progress import Silence
from trainprobe.nodes.remote_probes import Probed
from trainprobe.nodes.transports import Way
from trainprobe.ready import isolate as searching

NAMES = ("node1", "node2", "node3", "node4")
STEP_S = 6.0


def rounds(
    folder: Path,
    patch: pytest.MonkeyPatch,
    ports: str,
    *,
    left_s: float,
    keep_s: float,
    slow: str = "",
) -> int:
    """Search over nodes all of whose ports are in one state, each round taking six seconds by
    the clock; return how many rounds there were. Pairs of `slow` crawl.
    """
    now = [100.0]

    def probed(_way: Way, environs: Mapping[str, Any], *_: Any, **__: Any) -> dict[str, Probed]:
        now[0] += STEP_S
        found = {}
        for name in environs:
            pairs = {
                other: (
                    {"rtt_ms": 400.0, "mbps": 1.0}
                    if slow in (name, other)
                    else {"rtt_ms": 0.01, "mbps": 250.0}
                )
                for other in environs
            }
            told = {"heard": True, "ports": {"2000": "ok", "40000": ports}, "at": 1.0}
            peers = [
                {"event": "note", "name": "peer", "peer": other, **told, **pairs[other]}
                for other in environs
            ]
            found[name] = Probed(
                (
                    {"event": "note", "name": "self", "at": 1.0},
                    *peers,
                    {"event": "result", "answer": "yes", "at": 3.0},
                ),
                took_s=2.0,
            )
        return found

    patch.setattr(searching, "probe_on", probed)
    patch.setattr(searching, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with Case.create(str(folder / f"{ports}-{keep_s}-{slow}"), "ready", []) as case:
        way = Way("here", NAMES, lambda _name, argv, _talks: tuple(argv))
        return searching.isolate(
            NAMES, way, case, "quick", now[0] + left_s, Silence(), keep_s=keep_s
        ).rounds


def test_time_is_kept_for_what_comes_after_until_something_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rounds(tmp_path, monkeypatch, "ok", left_s=17.0, keep_s=10.0) == 1
    assert rounds(tmp_path, monkeypatch, "timeout", left_s=17.0, keep_s=10.0) == 3
    assert rounds(tmp_path, monkeypatch, "ok", left_s=17.0, keep_s=0.0) == 2


def test_a_pair_that_is_only_slow_is_tried_again_in_that_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rounds(tmp_path, monkeypatch, "ok", left_s=17.0, keep_s=10.0, slow="node3") == 3
