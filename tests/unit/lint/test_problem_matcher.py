"""GitHub's problem matcher in the documentation fits what the command prints."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.unit.lint.test_command import FAULT
from trainprobe.cli import run

MATCHER = Path(__file__).parents[3] / "docs" / "examples" / "lint-problem-matcher.json"


def matched(text: str) -> list[dict[str, str]]:
    """What GitHub makes of a step's output: an annotation for each line that a pattern fits."""
    found = []
    for matcher in json.loads(MATCHER.read_text(encoding="utf-8"))["problemMatcher"]:
        (pattern,) = matcher["pattern"]
        parts = {name: at for name, at in pattern.items() if name != "regexp"}
        found += [
            {"owner": matcher["owner"]} | {name: fits[at] for name, at in parts.items()}
            for line in text.splitlines()
            if (fits := re.search(pattern["regexp"], line))
        ]
    return found


@pytest.mark.parametrize("quiet", [["--quiet"], []])
def test_each_finding_and_each_unread_file_becomes_an_annotation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], quiet: list[str]
) -> None:
    fault, broken = tmp_path / "a b.py", tmp_path / "broken.py"
    fault.write_text(FAULT)
    broken.write_text("x = (\n")
    assert run(["lint", str(tmp_path), *quiet]) == 1

    finding, unread = matched(capsys.readouterr().out)

    assert finding.pop("message").startswith("barrier is a collective")
    assert finding == {
        "owner": "trainprobe-lint",
        "file": str(fault),
        "line": "4",
        "column": "5",
        "code": "rank-conditional-collective",
    }
    assert unread["owner"] == "trainprobe-lint-not-read"
    assert unread["file"] == str(broken)
    assert "never closed" in unread["message"]
