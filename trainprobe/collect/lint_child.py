"""The program that `lint_findings.py` runs: read a script and what it imports, and print what lint finds. Hostile source ends it and nobody else.

Arguments: the script, then how many lines of its imports are read, once for each turn. Output: one JSON object a line and a turn, so that what the
smaller turn found is not lost at the deadline: {files, lines, cut, findings, not_read}.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from typing import Any

FINDINGS_CAP = 200
NOT_READ_CAP = 20
TEXT_CAP = 600


def look(script: str, imported_lines: int) -> dict[str, Any]:
    """Lint a script with at most so many lines (and the rest of one file) of what it imports. `cut` is true where there was more."""
    from trainprobe.lint.reading import read_program
    from trainprobe.lint.running import findings_of

    program = read_program([script], imported_lines)
    findings, trouble = findings_of(program)
    imported = sum(len(module.lines) for module in program.modules.values() if not module.given)
    rows = [
        {
            "id": one.id,
            "rule": one.rule,
            "file": one.file,
            "line": one.line,
            "says": one.says[:TEXT_CAP],
            "why": one.why[:TEXT_CAP],
            "confidence": one.confidence,
            "fix": one.fix.says[:TEXT_CAP] if one.fix is not None else "",
        }
        for one in sorted(findings, key=lambda one: -one.confidence)[:FINDINGS_CAP]
    ]
    return {
        "files": len(program.modules),
        "lines": sum(len(module.lines) for module in program.modules.values()),
        "cut": imported > imported_lines,
        "findings": rows,
        "not_read": [{"file": one.file, "reason": one.reason[:TEXT_CAP]} for one in (*program.not_read, *trouble)[:NOT_READ_CAP]],
    }


def main(words: list[str]) -> None:
    """One turn after the other, until nothing is cut."""
    gc.disable()  # syntax trees all stay until the end
    for turn in words[1:]:
        told = look(words[0], int(turn))
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()
        if not told["cut"]:
            return


if __name__ == "__main__":
    # In place of this folder, whose modules are no top-level ones; the package need not be installed.
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    main(sys.argv[1:])
