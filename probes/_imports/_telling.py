"""What import_memory says of each import: its event, its numbers, and what it leaves behind."""

from __future__ import annotations

from typing import Any, Dict

import _emit

MIB = 2**20


def report(told: Dict[str, Any]) -> bool:
    passed: bool = told["outcome"] == "passed"
    who = {"alone": "alone", "whole": "all in one process"}.get(told["how"], f"together with the others, rank {told['rank']}")
    says = f"import {told['module']} ({who}): {told['outcome']}"
    if passed:
        says += f" in {told['took_s']:.2f} s, {told['rss_bytes'] / MIB:.0f} MiB (peak {told['peak_bytes'] / MIB:.0f}), {told['threads']} threads, {told['fds']} descriptors"
        says += f"{', touched CUDA' if told['touched_cuda'] else ''}"
        says += f", waited {told['lock_wait_s']:.1f} s for locks" if told["lock_wait_s"] else ""
    elif told["last_frame"]:
        says += f" at {told['last_frame']}"
    says += f": {told['error_type']}: {told['error'][:300]}" if told.get("error_type") else ""
    (_emit.note if passed or told["outcome"] == "not_measured" else _emit.fail)(says + ".", name="import", **told)
    if passed and told["how"] != "together":
        for name in ("took_s", "rss", "peak"):
            _emit.measure(
                f"import.{name}",
                *((told["took_s"], "s") if name == "took_s" else (told[f"{name}_bytes"], "bytes")),
                module=told["module"],
                how=told["how"],
                ranks=1,
            )
    return passed


def unsafe_to_fork(told: Dict[str, Any]) -> None:
    """Say which import left the process in a state that a fork does not survive."""
    started = told["threads"] - told["threads_before"]
    if started > 0:
        by = next(iter(told["threads_by"]), told["module"])
        says = f"`import {told['module']}` leaves {started} thread{'s' if started > 1 else ''} running ({by} starts them); a fork after it copies their locks and not them."
        _emit.note(
            says,
            check="fork.threads_at_import",
            status="warn",
            value=started,
            module=told["module"],
            by=by,
            count=started,
            fix="start loader workers with multiprocessing_context='forkserver', or import it in the workers only",
        )
    if told["touched_cuda"]:
        by = told["cuda_by"] or told["module"]
        says = f"`import {told['module']}` initialises CUDA ({by}); a process that is forked after it cannot use the GPU."
        _emit.note(
            says, check="fork.cuda_at_import", status="warn", value=by, module=told["module"], by=by, fix=f"move the CUDA calls out of the top level of {by}"
        )


def private_bytes(told: Dict[str, Any]) -> int:
    """What each more rank needs: the peak without pages of files, which all share, and the compilers that it starts."""
    return int(told["private_bytes"] + told["build_bytes"])
