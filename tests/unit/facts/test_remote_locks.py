"""A lock on a network file system that a process of another host holds.

The evidence is of a real job of three hosts: rank 0 waits in flock on node1 for a file on which
rank 1 has the lock on node2. This kernel has no NFS, so the hosts shared a local disk, and the row
of its mount is one of NFS here; the rest is as it was recorded.
"""

from __future__ import annotations

import json
import lzma
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trainprobe.facts import LockWait, read
from trainprobe.model.codec import from_json
from trainprobe.model.evidence import Evidence
from trainprobe.nodes.answers import at_host
from trainprobe.pipelines import conclude
from trainprobe.report.json_report import report_text

DATA = Path(__file__).with_name("data")
NFS = {
    "path": "/shared",
    "fstype": "nfs4",
    "device": "filer:/export",
    "remote": True,
    "used_by": [15],
    "probe": {"outcome": "answered", "took_s": 0.001},
}


def records(**mounts: dict[str, Any] | None) -> list[Evidence]:
    """The evidence of all nodes; `node1={...}` changes what its mount of the share is, None
    leaves it out.
    """
    found: list[Evidence] = []
    for host in ("node1", "node2", "node3"):
        mount = mounts.get(host, NFS)
        with lzma.open(DATA / f"lock-{host}.jsonl.xz", "rt", encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        for row in rows:
            if "kind" not in row:
                continue
            record = at_host(from_json(Evidence, row), host, 0.0)
            if record.kind == "mounts" and mount is not None:
                record = replace(record, data={"mounts": [*record.data["mounts"], mount]})
            found.append(replace(record, id=f"E{len(found) + 1}"))
    return found


def waits(found: list[Evidence]) -> list[tuple[str, str, str]]:
    return [
        (str(one.pid), str(one.holder_pid), one.path)
        for one in read(found).of(LockWait)
        if one.holder_pid and one.pid
    ]


def test_the_waiter_on_one_host_is_joined_with_the_holder_on_another() -> None:
    assert waits(records()) == [("15@node1", "15@node2", "/shared/job/checkpoint.lock")]


def test_the_report_blames_the_holder() -> None:
    report = conclude(records(), "attach", "case")
    first = report.causes[0]
    assert (report.verdict, first.ranks, first.hosts) == ("hung", (1,), ("node2",))
    assert "checkpoint.lock" in report_text(report)


@pytest.mark.parametrize(
    "mounts",
    [
        {"node1": None, "node2": None},
        {"node2": {**NFS, "device": "filer:/scratch"}},
        {"node2": {**NFS, "fstype": "ext4", "remote": False}},
        {"node1": {**NFS, "used_by": []}},
    ],
    ids=["a local disk", "another share", "local on one", "a share that the waiter does not use"],
)
def test_files_that_need_not_be_the_same_are_not_joined(mounts: dict[str, Any]) -> None:
    assert waits(records(**mounts)) == []


def test_the_same_share_may_be_mounted_elsewhere() -> None:
    found = records(node2={**NFS, "path": "/mnt/all"})
    moved = [
        (
            replace(
                one, data=json.loads(json.dumps(one.data).replace("/shared/job/", "/mnt/all/job/"))
            )
            if one.kind == "locks" and one.subject.host == "node2"
            else one
        )
        for one in found
    ]
    assert waits(moved) == [("15@node1", "15@node2", "/shared/job/checkpoint.lock")]
