"""The section of a batch script: worst first, with its line and fix, and a diff that can be
applied as it stands.
"""

from __future__ import annotations

from trainprobe.model.diagnosis import Diagnosis
from trainprobe.report.json_report import report_of
from trainprobe.report.lines import plain
from trainprobe.report.sbatch_section import sbatch_lines

ROWS = [
    {
        "id": "plan.output",
        "state": "warn",
        "line": 8,
        "says": "The next one overwrites it.",
        "fix": "--output=train-%j.out",
    },
    {
        "id": "plan.tasks",
        "state": "fail",
        "line": 12,
        "says": "One on each node.",
        "fix": "--ntasks-per-node=1",
    },
    {"id": "plan.gpus", "state": "ok", "line": 0, "says": "", "fix": ""},
]
CHANGES = [
    "--- job.sh",
    "+++ job.sh, corrected",
    "@@ -1,4 +1,4 @@",
    " #!/bin/bash",
    "-  srun -n8 train\x1b[31m.py",
    "+\tsrun -n4 train.py",
]


def lines(told: object) -> list[str]:
    report = report_of(
        Diagnosis("at-risk", conclusive=True, extra={"sbatch": told}), command="ready", case=""
    )
    return [plain(line) for line in sbatch_lines(report, 100)]


def test_worst_first_and_what_is_well_is_left_out() -> None:
    assert lines({"script": "/home/me/job.sh", "rows": ROWS, "changes": []}) == [
        "job.sh:12 wrong plan.tasks One on each node.",
        "    do: --ntasks-per-node=1",
        "job.sh:8 warning plan.output The next one overwrites it.",
        "    do: --output=train-%j.out",
    ]


def test_the_diff_keeps_its_marks_and_indentation() -> None:
    assert lines({"script": "job.sh", "rows": [], "changes": CHANGES}) == [
        "corrected:",
        "  --- job.sh",
        "  +++ job.sh, corrected",
        "  @@ -1,4 +1,4 @@",
        "   #!/bin/bash",
        "  -  srun -n8 train.py",
        "  + srun -n4 train.py",
    ]


def test_a_report_of_another_kind_or_shape_has_no_such_section() -> None:
    assert lines(None) == lines(["rows"]) == lines({"rows": 3, "changes": [4]}) == []
