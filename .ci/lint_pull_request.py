"""What action.yml runs: install trainprobe, lint what a pull request changes, annotate its lines.

By hand, in a repository: INPUT_PATHS=src BASE=origin/main python3 .ci/lint_pull_request.py

Reads INPUT_PATHS, INPUT_SINCE, INPUT_ARGUMENTS and INPUT_FAIL; BASE is the commit into which the
request would be merged. Prints annotations as GitHub's workflow commands, and writes a summary and
the number of findings where GITHUB_STEP_SUMMARY and GITHUB_OUTPUT say. Ends with lint's exit code,
or with 0 on findings where INPUT_FAIL is not "true".
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def install() -> list[str]:
    """Install trainprobe from this checkout into an environment of its own; return its command."""
    folder = Path(os.environ.get("RUNNER_TEMP") or tempfile.gettempdir()) / "trainprobe-lint"
    python = folder / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, str(ROOT)], check=True, stdout=sys.stderr)
    return [str(python), "-m", "trainprobe"]


def changed_since() -> list[str]:
    """Return lint's `--changed` for the base of the request, fetched where the clone is shallow; or
    nothing, where all lines count.
    """
    since = os.environ.get("INPUT_SINCE") or os.environ.get("BASE") or "all"
    if since == "all":
        return []
    known = ["git", "merge-base", "HEAD", since]
    if subprocess.run(known, capture_output=True, check=False).returncode:
        # a checkout of one commit knows neither the base nor where the two parted
        fetch = ["git", "fetch", "--quiet", "--no-tags", "--deepen=1000", "origin"]
        for what in ([], [since]):
            subprocess.run([*fetch, *what], check=False, stdout=sys.stderr)
    if subprocess.run(known, capture_output=True, check=False).returncode:
        print(f"::notice::{_text(f'{since} is not in this clone: all lines are annotated')}")
        return []
    return ["--changed", since]


def workflow_commands(report: dict[str, Any]) -> list[str]:
    """Return a workflow command for each finding and each file that could not be read."""
    lines = []
    for one in report["findings"]:
        place = f"file={_property(_shown(one['file']))},line={one['line']},col={one['column']}"
        fix = (one.get("fix") or {}).get("says", "")
        says = "\n".join(part for part in (one["says"], f"Instead: {fix}" if fix else "") if part)
        lines.append(f"::warning {place},title={_property(one['id'])}::{_text(says)}")
    lines += [
        f"::error file={_property(_shown(one['file']))}::{_text('not read: ' + one['reason'])}"
        for one in report["not_read"]
    ]
    return lines


def summary(report: dict[str, Any]) -> str:
    """Return the findings as a table in Markdown."""
    found = report["findings"]
    lines = [f"### trainprobe lint: {len(found)} finding{'' if len(found) == 1 else 's'}", ""]
    if found:
        lines += ["| where | cause | what |", "|---|---|---|"]
    lines += [
        f"| `{_shown(one['file'])}:{one['line']}` | {one['id']} | {_cell(one['says'])} |"
        for one in found
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", r"\|").split())


def _shown(file: str) -> str:
    """Return a path as GitHub wants it: from the root of the repository."""
    root = os.environ.get("GITHUB_WORKSPACE") or os.getcwd()
    path = os.path.relpath(os.path.realpath(file), os.path.realpath(root)) if file else ""
    return file if path.startswith("..") else path


def _text(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _text(text).replace(":", "%3A").replace(",", "%2C")


def _write(variable: str, text: str) -> None:
    if os.environ.get(variable):
        with open(os.environ[variable], "a", encoding="utf-8") as file:
            file.write(text)


def main() -> int:
    """Lint, annotate, and return the exit code."""
    tool = install()
    arguments = shlex.split(os.environ.get("INPUT_ARGUMENTS", ""))
    paths = shlex.split(os.environ.get("INPUT_PATHS") or ".")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lint.json"
        line = [*tool, "lint", "--json", str(file), *changed_since(), *arguments, *paths]
        ended = subprocess.run(line, check=False).returncode
        if not file.exists():
            return ended or 70
        report = json.loads(file.read_text(encoding="utf-8"))
    print("\n".join(workflow_commands(report)))
    _write("GITHUB_STEP_SUMMARY", summary(report))
    _write("GITHUB_OUTPUT", f"findings={len(report['findings'])}\n")
    findings_count = os.environ.get("INPUT_FAIL", "true") == "true"
    return 0 if ended == 1 and not findings_count else ended


if __name__ == "__main__":
    sys.exit(main())
