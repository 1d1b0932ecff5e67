"""Resolve the pins anew: `python .ci/resolve.py`, by a Python of 3.11 or later, with 3.10 to 3.13
on PATH or under pyenv.

Each minor version is resolved by its own pip without installing; the answers are merged into
`pins.txt` and `pins-dev.txt`, with an environment marker where they differ.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import tomllib

sys.path.insert(0, str(Path(__file__).parent))
from environment import HERE, PINS, ROOT, TORCH, interpreters

HEAD = "# Resolved by .ci/resolve.py from pyproject.toml; do not edit by hand.\n"
ALWAYS = (
    "pip",
    "hatchling",
    "editables",
    "numpy",
)  # to install trainprobe without build isolation; torch warns where numpy is not


def resolve(interpreter: Path, wanted: list[str]) -> dict[str, str]:
    """{name: version} of all that `wanted` needs on `interpreter`."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([str(interpreter), "-m", "venv", folder], check=True)
        python = os.path.join(folder, "bin", "python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--upgrade", "pip"], check=True)
        report = os.path.join(folder, "report.json")
        ask = [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--dry-run",
            "--ignore-installed",
            "--report",
            report,
            *wanted,
        ]
        subprocess.run(ask, check=True, cwd=ROOT)
        installs = json.loads(Path(report).read_text(encoding="utf-8"))["install"]
    return {
        item["metadata"]["name"].lower().replace("_", "-"): item["metadata"]["version"]
        for item in installs
    }


def merged(answers: dict[int, dict[str, str]]) -> str:
    """Requirement lines for {minor: {name: version}}, with markers where the minors differ."""
    lines = []
    for name in sorted({name for answer in answers.values() for name in answer}):
        versions = {minor: answer[name] for minor, answer in answers.items() if name in answer}
        for version in sorted(set(versions.values())):
            minors = sorted(minor for minor, its in versions.items() if its == version)
            everywhere = minors == sorted(answers)
            until = (
                "" if minors[-1] == max(answers) else f' and python_version < "3.{minors[-1] + 1}"'
            )
            since = "" if minors[0] == min(answers) else f' and python_version >= "3.{minors[0]}"'
            marker = "" if everywhere else " ;" + (since + until).removeprefix(" and")
            lines.append(f"{name}=={version}{marker}")
    return HEAD + "\n".join(lines) + "\n"


def needs_of_torch(interpreter: Path) -> list[str]:
    """What the CPU build of torch asks for; empty where it is not to be had."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        ask = [
            "--dry-run",
            "--ignore-installed",
            "--no-deps",
            "--target",
            folder,
            "--report",
            str(report),
            TORCH,
        ]
        if subprocess.run(
            [str(interpreter), "-m", "pip", "install", "--quiet", *ask], check=False
        ).returncode:
            return []
        needs = json.loads(report.read_text(encoding="utf-8"))["install"][0]["metadata"][
            "requires_dist"
        ]
    return [need for need in needs if "extra ==" not in need and "platform_system" not in need]


def main() -> None:
    by_minor: dict[int, Path] = {}
    for interpreter in interpreters():
        asked = subprocess.run(
            [str(interpreter), "-c", "import sys; print(sys.version_info[1])"],
            capture_output=True,
            text=True,
            check=True,
        )
        by_minor.setdefault(int(asked.stdout), interpreter)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    torch_needs = next(filter(None, map(needs_of_torch, by_minor.values())), [])
    run: dict[int, dict[str, str]] = {}
    dev: dict[int, dict[str, str]] = {}
    for minor, interpreter in by_minor.items():
        small = resolve(interpreter, [*project["dependencies"], *torch_needs, *ALWAYS])
        large = resolve(
            interpreter,
            [
                *project["dependencies"],
                *project["optional-dependencies"]["dev"],
                *torch_needs,
                *ALWAYS,
            ],
        )
        run[minor] = small
        dev[minor] = {name: version for name, version in large.items() if name not in small}
    PINS["run"].write_text(merged(run), encoding="utf-8")
    PINS["dev"].write_text(merged(dev), encoding="utf-8")
    print(f"pins for 3.{min(run)} to 3.{max(run)} written to {HERE}")


if __name__ == "__main__":
    main()
