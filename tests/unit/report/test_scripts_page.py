"""docs/scripts.md: each field that it names is in a report, and each exit code is one."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.cases.expectation import CASES
from tests.conftest import ROOT
from tests.unit.report.page.pages import since
from trainprobe.cli.exit_codes import MEANINGS
from trainprobe.report.json_report import report_text

PAGE = (ROOT / "docs" / "scripts.md").read_text(encoding="utf-8")
FIELDS = re.findall(r"`([a-z]+(?:\[0\])?(?:\.[a-z_]+(?:\[0\])?)*)`", PAGE.split("## Which fields")[1].split("## The next")[0])  # fmt: skip


# Words of other kinds that stand in the same marks: values, and fields of rows named before.
NO_FIELDS = ("true", "unknown", "disruptive", "part", "name", "before", "after", "changed")


def value(report: Any, path: str) -> Any:
    for name in path.replace("[0]", ".0").split("."):
        report = report[int(name)] if name == "0" else report[name]
    return report


def test_each_field_is_in_the_report_of_a_saved_case() -> None:
    report = json.loads(
        (CASES / "attach-lock-held-outside" / "expected" / "diagnosis.json").read_text()
    )
    report["undecided"] = report["undecided"] or [{"would_settle": ""}]
    compared = since("attach-rank-0-evaluates", "attach-lock-held-outside")
    report["against"] = json.loads(report_text(compared))["against"]
    paths = [path for path in FIELDS if path not in NO_FIELDS]
    assert len(paths) >= 18
    for path in paths:
        value(report, path)


def test_each_exit_code_is_told() -> None:
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)}
    assert codes == set(MEANINGS)
