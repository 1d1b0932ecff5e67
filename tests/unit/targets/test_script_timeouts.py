"""The timeout of a process group, as the text of a script sets it."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainprobe.targets.script_reader import read


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("dist.init_process_group('gloo', timeout=timedelta(minutes=5, seconds=2 * 3))", 306.0),
        ("dist.init_process_group('nccl', timeout=datetime.timedelta(0, 90))", 90.0),
        ("InitProcessGroupKwargs(timeout=timedelta(hours=1.5))", 5400.0),
        ("TrainingArguments(output_dir='o', ddp_timeout=7200)", 7200.0),
        ("dist.init_process_group('gloo', timeout=LIMIT)", None),
        ("dist.init_process_group('gloo', timeout=timedelta(minutes=args.minutes))", None),
        ("dist.init_process_group('gloo')", None),
        ("requests.get(url, timeout=timedelta(seconds=3))", None),
        (
            (
                "dist.init_process_group(timeout=timedelta(hours=1));"
                " dist.new_group(timeout=timedelta(minutes=1))"
            ),
            60.0,
        ),
    ],
)
def test_what_the_text_shows_and_nothing_else(
    tmp_path: Path, line: str, seconds: float | None
) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"import datetime\nfrom datetime import timedelta\n{line}\n")
    assert read(str(script))["group_timeout_s"] == seconds
