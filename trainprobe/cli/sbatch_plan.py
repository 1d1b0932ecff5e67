"""`trainprobe ready --sbatch job.sh`: the plan of a job before it is submitted, against its site
and this login node.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trainprobe.errors import UsageError

if TYPE_CHECKING:
    from trainprobe.cli.output import Output
    from trainprobe.model.diagnosis import Report


def sbatch_plan(
    script: str,
    options: Sequence[str],
    *,
    write: str | None,
    case: str | None,
    output: Output,
) -> Report:
    """Check a batch script, print what is wrong with its corrected lines, and return the report.

    `options` are those of sbatch's command line. `write` is a file for the corrected script, which
    is written only there; the script itself is never changed and never run. Raises UsageError where
    it cannot be read, or `write` names the script itself or a place where nothing can be written.
    """
    from trainprobe.case import Case
    from trainprobe.cli.output import write_result
    from trainprobe.collect.sbatch_script import look_at_script, read_text
    from trainprobe.pipelines import conclude
    from trainprobe.report.json_report import report_text
    from trainprobe.report.text import text_of
    from trainprobe.sbatch.manifests import is_manifest
    from trainprobe.sbatch.schedulers import SLURM, scheduler_of
    from trainprobe.system.working_folders import working_folder
    from trainprobe.targets.slurm_site import slurm_site

    _check_target(write, script)
    told: dict[str, object] = {}
    text = read_text(script)  # before anybody is asked: a wrong name must be said at once
    if scheduler_of(text) is SLURM and not is_manifest(text):
        if not output.quiet:
            sys.stderr.write("trainprobe: asking SLURM what the site allows.\n")
        site = slurm_site()
        told = {
            "version": site.version,
            "config": dict(site.config),
            "partitions": list(site.partitions),
            "nodes": list(site.nodes),
            "unknown": list(site.unknown),
        }
    with (
        working_folder() as folder,
        Case.create(case or os.path.join(folder, "case"), "ready", _argv(script, options)) as kept,
    ):
        _, data = look_at_script(kept, script, options, told)
        report = conclude(
            kept.seal(),
            "ready",
            kept.name if case else "",
            (kept.trouble,) if kept.trouble and case else (),
        )
        if case:
            kept.write_derived("diagnosis.json", report_text(report))
            kept.write_derived("report.txt", text_of(report))
    write_result(output, report)
    if write is not None:
        _write(write, data)
    return report


def _argv(script: str, options: Sequence[str]) -> tuple[str, ...]:
    return ("trainprobe", "ready", "--sbatch", script, *(("--", *options) if options else ()))


def _check_target(write: str | None, script: str) -> None:
    if write is None:
        return
    folder = os.path.dirname(write) or "."
    if os.path.exists(write) and os.path.exists(script) and os.path.samefile(write, script):
        raise UsageError(
            f"--write {write} is the script itself, which is left as it is.", "Name another file."
        )
    if (
        os.path.isdir(write)
        or not os.path.isdir(folder)
        or not os.access(write if os.path.exists(write) else folder, os.W_OK)
    ):
        raise UsageError(
            f"--write {write} cannot be written.",
            "Name a file in a folder that exists and is yours.",
        )


def _write(write: str, data: dict[str, object]) -> None:
    """Write the corrected script, made from the text itself and not from the case, in which
    secrets are hidden.
    """
    from trainprobe.facts.sbatch_rules import mended

    text = mended(data)
    try:
        with open(write, "w", encoding="utf-8", newline="") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"--write {write} could not be written: {error.strerror}.") from error
    sys.stderr.write(
        f"trainprobe: {write} is the corrected"
        f" script{'' if text != data['text'] else ', the same as it was: nothing could be corrected by rule'}.\n"  # noqa: E501
    )
