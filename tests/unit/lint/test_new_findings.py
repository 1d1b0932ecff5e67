"""Only what is new: baselines, changed lines, and what a viewer of SARIF knows again."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from trainprobe.cli import run
from trainprobe.lint import baseline
from trainprobe.lint.engine import findings_of
from trainprobe.lint.reading import read_program

FAULT = "import torch.distributed as dist\nif dist.get_rank() == 0:\n    dist.barrier()\n"
MORE = "if dist.get_rank() == 0:\n    dist.all_reduce(1)\n"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "src" / "t.py"
    path.parent.mkdir()
    path.write_text(FAULT)
    return path


def test_a_baseline_holds_what_is_known(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = script.parent.parent / "known.json"
    assert run(["lint", str(script), "--write-baseline", str(kept)]) == 0
    assert run(["lint", str(script), "--baseline", str(kept)]) == 0
    assert "1 finding of the baseline not shown." in capsys.readouterr().out
    script.write_text("# moved\n" + FAULT + MORE)
    assert run(["lint", str(script), "--baseline", str(kept), "--quiet"]) == 1
    assert "t.py:6:5 " in capsys.readouterr().out
    script.write_text(FAULT + FAULT)  # the same line twice is one more finding
    assert run(["lint", str(script), "--baseline", str(kept)]) == 1


@pytest.mark.parametrize("text", ["", "[]", '{"schema": "x"}', None])
def test_a_baseline_that_is_none_is_refused(script: Path, text: str | None) -> None:
    kept = script.parent / "known.json"
    if text is not None:
        kept.write_text(text)
    assert run(["lint", str(script), "--baseline", str(kept)]) == 2


def test_a_baseline_is_written_alone(script: Path) -> None:
    asked = ["lint", str(script), "--write-baseline", "a.json"]
    assert run([*asked, "--baseline", "b.json"]) == 2


def test_a_baseline_is_the_same_from_any_folder(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = findings_of(read_program([str(script)]))[0]
    text = baseline.as_document(found, str(script.parent.parent))
    monkeypatch.chdir(script.parent)
    here = findings_of(read_program(["t.py"]))[0]
    assert here
    assert baseline.beyond(here, baseline.read(text), "..") == []


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=n", "-c", "user.email=e"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def test_changed_lines(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git(script.parent, "init", "-q")
    git(script.parent, "add", ".")
    git(script.parent, "commit", "-qm", "one")
    assert run(["lint", str(script), "--changed", "HEAD"]) == 0
    assert "1 finding in unchanged lines not shown." in capsys.readouterr().out
    script.write_text(FAULT + MORE)
    assert run(["lint", str(script.parent), "--changed", "HEAD", "--quiet"]) == 1
    assert [line.split("  ")[0][-6:] for line in capsys.readouterr().out.splitlines()] == ["py:5:5"]
    script.write_text(FAULT)
    new = script.parent / "new file.py"  # git does not know it: all of it is new
    new.write_text(FAULT)
    assert run(["lint", str(script.parent), "--changed", "HEAD", "--quiet"]) == 1
    assert "new file.py:3:5" in capsys.readouterr().out


def test_a_changed_helper_counts_where_it_is_called(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    helper = script.parent / "helper.py"
    helper.write_text("import torch.distributed as dist\ndef meet():\n    print(1)\n")
    script.write_text(
        "import torch.distributed as dist\nfrom helper import meet\n"
        "if dist.get_rank() == 0:\n    meet()\n"
    )
    git(script.parent, "init", "-q")
    git(script.parent, "add", ".")
    git(script.parent, "commit", "-qm", "one")
    helper.write_text("import torch.distributed as dist\ndef meet():\n    dist.barrier()\n")
    assert run(["lint", str(script.parent), "--changed", "HEAD", "--quiet"]) == 1
    assert "t.py:4:5" in capsys.readouterr().out


@pytest.mark.parametrize("commit", ["nosuch", "-p"])
def test_a_commit_that_is_none_is_refused(script: Path, commit: str) -> None:
    git(script.parent, "init", "-q")
    assert run(["lint", str(script), f"--changed={commit}"]) == 2


def test_sarif_holds_fixes_and_fingerprints(script: Path) -> None:
    told = []
    for text in (
        (
            "import torch.distributed as dist\nif dist.get_rank() == 0:\n    print('ü')\n"
            "    dist.barrier()\n"
        ),
        (
            "\nimport torch.distributed as dist\nif dist.get_rank() == 0:\n    print('ü')\n"
            "    dist.barrier()\n"
        ),
    ):
        script.write_text(text)
        assert run(["lint", str(script), "--quiet", "--sarif", str(script) + ".sarif"]) == 1
        log = json.loads(Path(str(script) + ".sarif").read_text())
        told.append(log["runs"][0]["results"][0])
    fix = told[0]["fixes"][0]["artifactChanges"][0]
    assert fix["artifactLocation"]["uri"].endswith("src/t.py")
    assert fix["replacements"] == [
        {
            "deletedRegion": {"startLine": 4, "startColumn": 1, "endLine": 4, "endColumn": 19},
            "insertedContent": {"text": "dist.barrier()"},
        }
    ]
    assert told[0]["partialFingerprints"] == told[1]["partialFingerprints"]
