"""The program that the collector `lint` runs: read a script and what it imports, and print what
lint finds. Hostile source ends it and nobody else.

Input: one JSON object {script, others, turns, versions, cpus, descriptors, ranks, cpu_s,
memory_bytes}; `others` are read with the script, `turns` says how many lines of their imports are
read in each turn, `cpu_s` and `memory_bytes` bound this process, the others are what is known of
the place where it runs, null where it is not. Output: one JSON object a line and a turn, so that
what the smaller turn found is not lost at the deadline: {files, lines, cut, findings, not_read}.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainprobe.lint.program import NodeInfo

FINDINGS_CAP = 200
NOT_READ_CAP = 20
TEXT_CAP = 600


def look(files: Sequence[str], imported_lines: int, around: NodeInfo) -> dict[str, Any]:
    """Lint files and about so many lines of their imports. `cut` is true where there was more."""
    from trainprobe.lint.engine import findings_of, for_a_running_job
    from trainprobe.lint.reading import read_program

    program = read_program(files, imported_lines, around)
    findings, trouble = findings_of(program, hints=True)
    imported = sum(len(module.lines) for module in program.modules.values() if not module.requested)
    rows = [
        {
            "id": finding.id,
            "rule": finding.rule,
            "file": finding.file,
            "line": finding.line,
            "span": finding.span,
            "reaches": finding.reaches,
            "says": finding.says[:TEXT_CAP],
            "why": finding.why[:TEXT_CAP],
            "confidence": finding.confidence,
            "fix": finding.fix.says[:TEXT_CAP] if finding.fix is not None else "",
        }
        for finding in sorted(for_a_running_job(findings), key=lambda finding: -finding.confidence)[
            :FINDINGS_CAP
        ]
    ]
    return {
        "files": len(program.modules),
        "lines": sum(len(module.lines) for module in program.modules.values()),
        "cut": imported > imported_lines,
        "findings": rows,
        "not_read": [
            {"file": part.file, "reason": part.reason[:TEXT_CAP], "rule": part.rule}
            for part in (*program.not_read, *trouble)[:NOT_READ_CAP]
        ],
    }


def main(asked: Mapping[str, Any]) -> None:
    """One turn after the other, until nothing is cut."""
    from trainprobe.lint.program import NodeInfo
    from trainprobe.lint.reading import installed_versions

    _limit(resource.RLIMIT_CPU, asked["cpu_s"])  # should nobody be left to end it
    _limit(resource.RLIMIT_AS, asked["memory_bytes"])
    gc.disable()  # syntax trees all stay until the end
    versions = asked["versions"] if asked["versions"] is not None else installed_versions()
    around = NodeInfo(versions, asked["cpus"], asked["descriptors"], asked["ranks"])
    for turn in asked["turns"]:
        answer = look([asked["script"], *asked["others"]], turn, around)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
        if not answer["cut"]:
            return


def _limit(what: int, most: int | None) -> None:
    hard = resource.getrlimit(what)[1]
    if most is not None and (hard == resource.RLIM_INFINITY or most < hard):
        resource.setrlimit(what, (most, hard))


if __name__ == "__main__":
    # In place of this folder, whose modules are no top-level ones; the package need not be
    # installed.
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    main(json.loads(sys.stdin.read()))
