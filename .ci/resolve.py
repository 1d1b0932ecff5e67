"""Resolve the pins anew: `python .ci/resolve.py [run] [build] [site]`, by a Python of 3.11 or
later, with 3.10 to 3.13 on PATH or under pyenv. `run` are the pins of the tool and of its tests;
without a word all are resolved.

Each minor version is resolved by its own pip without installing; the answers are merged into
`pins.txt`, `pins-dev.txt`, `pins-build.txt` and `pins-site.txt`, with an environment marker where
they differ. `locked.txt` and `locked-dev.txt` are the first two with the hash of each file that the
index lists for them; only these are made anew by `python .ci/resolve.py --hashes`.
`locked-release.txt` holds the tools of `make audit` and `make sbom`, for the Python that runs this,
and only it is made anew by `--release`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.parse
from pathlib import Path

import tomllib

sys.path.insert(0, str(Path(__file__).parent))
from fetch_pip import configured, listed, places

from environment import HERE, LOCKED, PINS, ROOT, TORCH, interpreters

HEAD = "# Resolved by .ci/resolve.py from pyproject.toml; do not edit by hand.\n"
RELEASE = ("cyclonedx-bom", "pip-audit")
LOCKED_RELEASE = HERE / "locked-release.txt"
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
        re.sub("[-_.]+", "-", item["metadata"]["name"].lower()): item["metadata"]["version"]
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


# What a Python of ours on Linux or a Mac may take: wheels for it, and the source.
TAKEN = re.compile(
    r"[^-]+-[^-]+(?:-[^-]+)?-(?:py3|py2\.py3|cp3(?:[789]|1[0-4]))-(?:none|abi3|cp31[0-4])"
    r"-(?:any|(?:many|musl)linux.*_(?:x86_64|aarch64)|macosx_.*)\.whl|.*\.tar\.gz"
)


def hashes(requirement: str) -> list[str]:
    """The sha256 of each file of NAME==VERSION on the first index that lists one."""
    name, version = requirement.split(" ", maxsplit=1)[0].split("==")
    settings = configured()
    words = "[-_.]".join(map(re.escape, name.split("-")))
    begins = re.compile(rf"{words}-{re.escape(version)}(?:-|\.tar)", re.IGNORECASE)
    for page in places(settings, name):
        try:
            files = [urllib.parse.urlsplit(link) for link in listed(page, settings.get("cert"))]
        except OSError:  # an index need not know it
            continue
        found = {
            file.fragment.removeprefix("sha256=")
            for file in files
            if begins.match(base := file.path.rsplit("/", 1)[-1])
            and TAKEN.fullmatch(base)
            and file.fragment.startswith("sha256=")
        }
        if found:
            return sorted(found)
    raise SystemExit(f"no index lists a file with its hash for {requirement}")


def locked(pins: str) -> str:
    """The pins with their hashes, as `pip install --require-hashes` takes them."""
    lines = [line for line in pins.splitlines() if line and not line.startswith("#")]
    return HEAD + "".join(
        " \\\n    ".join([line, *(f"--hash=sha256:{each}" for each in hashes(line))]) + "\n"
        for line in lines
    )


def lock() -> None:
    for kind, path in LOCKED.items():
        path.write_text(locked(PINS[kind].read_text(encoding="utf-8")), encoding="utf-8")


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
    if sys.argv[1:] == ["--hashes"]:
        lock()
        return
    if sys.argv[1:] == ["--release"]:
        release = {sys.version_info[1]: resolve(Path(sys.executable), list(RELEASE))}
        LOCKED_RELEASE.write_text(locked(merged(release)), encoding="utf-8")
        return
    by_minor: dict[int, Path] = {}
    for interpreter in interpreters():
        asked = subprocess.run(
            [str(interpreter), "-c", "import sys; print(sys.version_info[1])"],
            capture_output=True,
            text=True,
            check=True,
        )
        by_minor.setdefault(int(asked.stdout), interpreter)
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = whole["project"]
    for kind, wanted in (
        ("build", whole["build-system"]["requires"]),
        ("site", whole["dependency-groups"]["site"]),
    ):
        if len(sys.argv) == 1 or kind in sys.argv[1:]:
            answers = {minor: resolve(one, wanted) for minor, one in by_minor.items()}
            PINS[kind].write_text(merged(answers), encoding="utf-8")
    if len(sys.argv) > 1 and "run" not in sys.argv[1:]:
        return
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
    lock()
    print(f"pins for 3.{min(run)} to 3.{max(run)} written to {HERE}")


if __name__ == "__main__":
    main()
