"""The lines of a git work tree that differ from a commit."""

from __future__ import annotations

import os
import re
from typing import Dict, List, Optional, Set

from trainprobe.errors import UsageError
from trainprobe.system.run import Ran, run

GIT_S = 60.0
OUTPUT_BYTES = 256 * 2**20
HUNK = re.compile(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@")

ChangedLines = Dict[str, Optional[Set[int]]]
"""Lines by the file's real path; None for a file that git does not know, which is all new."""


def changed_lines(reference: str, folder: str) -> ChangedLines:
    """Return what the work tree around `folder` changed since it parted from `reference`, what is
    not committed included. Raises UsageError where git cannot say.
    """
    if reference.startswith("-"):
        raise UsageError(f"{reference} is no commit.", "Name one, as in --changed origin/main.")
    top = _git(["rev-parse", "--show-toplevel"], folder, reference).decode(errors="replace").strip()
    parted = _git(["merge-base", reference, "HEAD"], top, reference).decode().strip()
    options = ["--no-color", "--no-ext-diff", "--no-renames", "--unified=0"]
    prefixes = ["--src-prefix=a/", "--dst-prefix=b/"]
    difference = _git(
        ["-c", "core.quotepath=off", "diff", *options, *prefixes, parted, "--"], top, reference
    )
    found: ChangedLines = dict(_lines_of(difference.decode(errors="replace"), top))
    others = _git(["ls-files", "-z", "--others", "--exclude-standard"], top, reference)
    for name in others.decode(errors="replace").split("\0"):
        if name:
            found[os.path.realpath(os.path.join(top, name))] = None
    return found


def _git(arguments: List[str], folder: str, reference: str) -> bytes:
    ran = run(["git", *arguments], timeout_s=GIT_S, cwd=folder, output_cap_bytes=OUTPUT_BYTES)
    if ran.ended.how == "exited" and ran.ended.code == 0 and not ran.cut:
        return ran.stdout
    raise UsageError(
        f"git cannot tell what changed since {reference}: {_reason(ran)}.",
        "--changed needs a git work tree and the commit, which a shallow clone may lack.",
    )


def _reason(ran: Ran) -> str:
    if ran.ended.reason:
        return ran.ended.reason
    said = ran.stderr.decode(errors="replace").strip().splitlines()
    return said[0].removeprefix("fatal: ").rstrip(".") if said else "it failed"


def _lines_of(difference: str, top: str) -> Dict[str, Set[int]]:
    found: Dict[str, Set[int]] = {}
    lines: Set[int] = set()
    for text in difference.splitlines():
        if text.startswith("+++ "):
            lines = set()
            if text.startswith("+++ b/"):
                path = os.path.join(top, text[len("+++ b/") :].rstrip("\t"))
                found[os.path.realpath(path)] = lines
        elif (hunk := HUNK.match(text)) is not None:
            first, count = int(hunk.group(1)), int(hunk.group(2) or 1)
            # where lines were only taken away, those around the gap count
            lines.update(range(first, first + max(count, 2)))
    return found
