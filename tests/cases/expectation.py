"""What a golden case must give: its report as text and as JSON, and agreement with the truth
about it.
"""

from __future__ import annotations

import difflib
import json
import shutil
from pathlib import Path
from typing import Any

from tests.cases.recipes import RECIPES
from trainprobe.pipelines import explain
from trainprobe.report.json_report import report_text
from trainprobe.report.text import text_of

CASES = Path(__file__).resolve().parent
ACTUAL = CASES.parent / "actual"
FILES = ("report.txt", "diagnosis.json")


def names() -> list[str]:
    return sorted(path.parent.name for path in CASES.glob("*/case.json"))


def judged(case: Path) -> dict[str, str]:
    """Judge the case; return the text of each derived file by its name."""
    report = explain(str(case))
    return {"report.txt": text_of(report), "diagnosis.json": report_text(report)}


def untrue(name: str, actual: dict[str, str]) -> str:
    """Say where a judgement contradicts the truth about the case, or nothing."""
    truth, said = RECIPES[name], json.loads(actual["diagnosis.json"])
    first: dict[str, Any] = (
        said["causes"][0] if said["causes"] else {"id": "", "ranks": [], "named": True}
    )
    found = (said["verdict"], first["id"], tuple(first["ranks"]), first["named"])
    wanted = (
        truth.verdict,
        truth.cause,
        truth.ranks,
        truth.cause != "unknown",
    )  # where no cause fits, none is named
    return "" if found == wanted else f"{name}: judged {found}, in truth {wanted}"


def differences(name: str, actual: dict[str, str]) -> str:
    """Compare with what is expected. Where it differs, write the actual files to
    tests/actual/NAME and return a diff.
    """
    parts: list[str] = []
    for file in FILES:
        kept = CASES / name / "expected" / file
        expected = kept.read_text(encoding="utf-8") if kept.exists() else ""
        if expected != actual[file]:
            parts += difflib.unified_diff(
                expected.splitlines(),
                actual[file].splitlines(),
                f"expected/{file}",
                f"actual/{file}",
                lineterm="",
            )
    folder = ACTUAL / name
    if parts:
        write(folder, actual)
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return "\n".join(parts)


def accept(name: str) -> bool:
    """Make what is judged now the expectation, and say whether that changed it. ValueError where
    it is untrue.
    """
    actual = judged(CASES / name)
    wrong = untrue(name, actual)
    if wrong:
        raise ValueError(wrong)
    changed = differences(name, actual) != ""
    write(CASES / name / "expected", actual)
    shutil.rmtree(ACTUAL / name, ignore_errors=True)
    return changed


def write(folder: Path, actual: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in actual.items():
        (folder / file).write_text(text, encoding="utf-8")
