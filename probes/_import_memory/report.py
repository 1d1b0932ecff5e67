"""Reports each import: its event, its numbers, and what it leaves behind."""

from __future__ import annotations

from typing import Any, Dict

import _emit

MIB = 2**20


def report(result: Dict[str, Any]) -> bool:
    passed: bool = result["outcome"] == "passed"
    who = {"alone": "alone", "whole": "all in one process"}.get(
        result["how"], f"together with the others, rank {result['rank']}"
    )
    sentence = f"import {result['module']} ({who}): {result['outcome']}"
    if passed:
        sentence += (
            f" in {result['took_s']:.2f} s, {result['rss_bytes'] / MIB:.0f} MiB (peak"
            f" {result['peak_bytes'] / MIB:.0f}), {result['threads']} threads, {result['fds']}"
            " descriptors"
        )
        sentence += f"{', touched CUDA' if result['touched_cuda'] else ''}"
        sentence += (
            f", waited {result['lock_wait_s']:.1f} s for locks" if result["lock_wait_s"] else ""
        )
    elif result["last_frame"]:
        sentence += f" at {result['last_frame']}"
    sentence += (
        f": {result['error_type']}: {result['error'][:300]}" if result.get("error_type") else ""
    )
    (_emit.note if passed or result["outcome"] == "not_measured" else _emit.fail)(
        sentence + ".", name="import", **result
    )
    if passed and result["how"] != "together":
        for name in ("took_s", "rss", "peak"):
            _emit.measure(
                f"import.{name}",
                *(
                    (result["took_s"], "s")
                    if name == "took_s"
                    else (result[f"{name}_bytes"], "bytes")
                ),
                module=result["module"],
                how=result["how"],
                ranks=1,
            )
    return passed


def unsafe_to_fork(result: Dict[str, Any]) -> None:
    """Say which import left the process in a state that a fork does not survive."""
    started = result["threads"] - result["threads_before"]
    if started > 0:
        by = next(iter(result["threads_by"]), result["module"])
        sentence = (
            f"`import {result['module']}` leaves {started} thread{'s' if started > 1 else ''}"
            f" running ({by} starts them); a fork after it copies their locks and not them."
        )
        _emit.check(
            "fork.threads_at_import",
            "warn",
            sentence,
            started,
            module=result["module"],
            by=by,
            count=started,
            fix="start loader workers with multiprocessing_context='forkserver', or import it in"
            " the workers only",
        )
    if result["touched_cuda"]:
        by = result["cuda_by"] or result["module"]
        sentence = (
            f"`import {result['module']}` initialises CUDA ({by}); a process that is forked after"
            " it cannot use the GPU."
        )
        fix = f"move the CUDA calls out of the top level of {by}"
        _emit.check(
            "fork.cuda_at_import", "warn", sentence, by, module=result["module"], by=by, fix=fix
        )


def private_bytes(result: Dict[str, Any]) -> int:
    """What each more rank needs: the peak without shared pages of files, and its compilers."""
    return int(result["private_bytes"] + result["build_bytes"])
