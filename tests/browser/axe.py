"""axe-core, the checker of accessibility, from the npm registry: only the file whose hash stands
here, and no package of it comes with trainprobe.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

VERSION = "4.11.0"
INTEGRITY = (
    "ilYanEU8vxxBexpJd8cWM4ElSQq4QctCLKih0TSfjIfCQTeyH/6zVrmIJfLPrKTKJRbiG+cfnZbQIjAlJmF1jQ=="
)
PATIENCE_S = 60


def axe_script(kept: Path) -> str | None:
    """Return the script, fetched once into `kept`; None where there is no npm or no registry."""
    archive = kept / f"axe-core-{VERSION}.tgz"
    if not archive.exists():
        npm = shutil.which("npm")
        if npm is None:
            return None
        try:
            subprocess.run(
                [npm, "pack", f"axe-core@{VERSION}", "--silent", "--pack-destination", str(kept)],
                cwd=kept,
                env={**os.environ, "npm_config_update_notifier": "false"},
                capture_output=True,
                timeout=PATIENCE_S,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            return None
    content = archive.read_bytes()
    found = base64.b64encode(hashlib.sha512(content).digest()).decode()
    if found != INTEGRITY:
        archive.unlink()
        raise AssertionError(f"axe-core {VERSION} has another hash: {found}")
    with tarfile.open(fileobj=io.BytesIO(content)) as opened:
        member = opened.extractfile("package/axe.min.js")
        assert member is not None
        return member.read().decode()
