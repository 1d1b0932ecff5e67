"""What the jobs of this folder showed on a real GPU, kept without the names of that machine.

python -m tests.gpu.recordings FOLDER [NAME ...]    take over what tests.gpu.record wrote
"""

from __future__ import annotations

import json
import lzma
import re
import sys
from pathlib import Path
from typing import Any

from tests.cases.scrub import scrubber, whole
from tests.gallery.live.replay import unlabelled
from trainprobe.model.codec import from_json
from trainprobe.model.evidence import Evidence
from trainprobe.pipelines import conclude
from trainprobe.report.json_report import report_text

RECORDED = Path(__file__).resolve().parent / "recorded"
UUID = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
CGROUP = re.compile(r"(?<=/sys/fs/cgroup)/\w+/[0-9a-f]{32}")
ENVIRONMENT = re.compile(r"/tmp/v(?=/|\")|/opt/torch/\.venv")


def names() -> list[str]:
    return sorted(path.name.removesuffix(".xz") for path in RECORDED.glob("*.xz"))


def judged(name: str) -> dict[str, Any]:
    """The report on what was seen then, made today."""
    lines = lzma.decompress((RECORDED / f"{name}.xz").read_bytes()).decode().splitlines()
    records = [from_json(Evidence, json.loads(line)) for line in lines]
    command = "explain" if any(record.kind == "log" for record in records) else "attach"
    report: dict[str, Any] = json.loads(report_text(conclude(records, command, "case")))
    return report


def keep(folder: Path) -> None:
    scrub = scrubber(folder, json.loads((folder / "case" / "case.json").read_text())["host"])
    kept = []
    for line in (folder / "case" / "evidence.jsonl").read_text(encoding="utf-8").splitlines():
        text = json.dumps(whole(json.loads(line), scrub))
        text = UUID.sub("GPU-00000000-0000-0000-0000-000000000000", unlabelled(text))
        kept.append(ENVIRONMENT.sub("/env", CGROUP.sub("/job.slice/0", text)))
    RECORDED.mkdir(exist_ok=True)
    (RECORDED / f"{folder.name}.xz").write_bytes(lzma.compress("\n".join(kept).encode()))


if __name__ == "__main__":
    source = Path(sys.argv[1])
    for each in sys.argv[2:] or sorted(path.parent.name for path in source.glob("*/case")):
        keep(source / each)
