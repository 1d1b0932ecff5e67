# /// trainprobe
# rung: 12
# ladder: false
# ready: quick
# slots: [step]
# question: If this job hung, could the reason be found?
# scope: host
# needs: []
# timeout_s: 20
# climbs: []
# after: []
# means: Something that a diagnosis needs is switched off or forbidden. The job runs, but less
#   can be learnt when it hangs.
# ///
"""Prove that the job will be diagnosable: what can be tried is tried, on processes and files of our
own. Standard library only.

Flags and environment: see `_shared/checks.py`; TRAINPROBE_SCRIPT. Events: checks.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import resource
import socket
import sys
import tempfile
import time
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from _diagnosable import dumps, script, tracing
from _shared import checks, child_processes, kernel_files

RAS_PORT = 28028  # NCCL user guide, RAS
NCCL_TIMEOUT_S, GLOO_TIMEOUT_S = 600.0, 1800.0  # torch/distributed/constants.py
WAIT_DUMP_MS = 15000  # ProcessGroupNCCL.cpp: TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC


def has_gpu(launch: checks.Launch) -> bool:
    return bool(kernel_files.matching(launch.root, "/dev/nvidia[0-9]*"))


def ptrace(launch: checks.Launch, results: checks.Results) -> None:
    answer = child_processes.ask(tracing.tried, results.threshold("diag.ptrace", 5.0))
    if answer.how != "answered":
        sentence = f"The check whether stacks may be read failed: {answer.reply}."
        results.add("diag.ptrace", "unknown", sentence)
        return
    around: Any = {**tracing.ptrace_limits(launch.root), **answer.reply}
    why = (
        f"Yama's scope is {around['scope']}"
        if around["scope"]
        else "a seccomp filter or a missing capability forbids it"
    )
    if not around["child"] and not around["other"]:
        sentence = (
            "Stacks of processes of the same user may be read: a process that is no descendant was"
            " tried."
        )
        results.add("diag.ptrace", "ok", sentence, around)
        return
    who = "only by their own parent" if not around["child"] else "by nobody"
    fix = (
        "sudo sysctl kernel.yama.ptrace_scope=0; in a container docker run --cap-add=SYS_PTRACE; or"
        " start the job with trainprobe run"
    )
    sentence = f"Stacks of ranks may be read {who}: {around['other'] or around['child']}, {why}."
    results.add("diag.ptrace", "warn", sentence, around, fix=fix)


def ras(launch: checks.Launch, results: checks.Results) -> None:
    if not has_gpu(launch):
        results.add("diag.ras", "skip", "There is no GPU here, so NCCL and its RAS are not used.")
        return
    host, _, port = os.environ.get("NCCL_RAS_ADDR", "").rpartition(":")
    where = (host or "localhost", int(port) if port.isdecimal() else RAS_PORT)
    if os.environ.get("NCCL_RAS_ENABLE") == "0":
        sentence = "NCCL's RAS is off (NCCL_RAS_ENABLE=0), so it cannot say which ranks lag."
        results.add("diag.ras", "warn", sentence, where, fix="unset NCCL_RAS_ENABLE")
        return
    with contextlib.closing(socket.socket()) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(where)
        except OSError as error:
            fix = "export NCCL_RAS_ADDR=localhost:28029, or another free port"
            sentence = (
                f"NCCL's RAS cannot listen on {where[0]}:{where[1]}: {error.strerror or error}."
            )
            results.add("diag.ras", "warn", sentence, where, fix=fix)
            return
    results.add("diag.ras", "ok", f"NCCL's RAS can listen on {where[0]}:{where[1]}.", where)


def stacks(_launch: checks.Launch, results: checks.Results) -> None:
    with tempfile.TemporaryFile() as file:
        faulthandler.dump_traceback(file)
        size = file.tell()
    by_itself = " and is on" if os.environ.get("PYTHONFAULTHANDLER") else ""
    sentence = f"faulthandler {'works' if size else 'writes nothing'}{by_itself}."
    results.add(
        "diag.faulthandler", "ok" if size else "warn", sentence, size, fix="use another Python"
    )


def error_file(_launch: checks.Launch, results: checks.Results) -> None:
    path = os.environ.get("TRAINPROBE_SCRIPT", "")
    script_facts = script.read(path) if path else None
    if script_facts is None:
        results.add(
            "diag.errfile",
            "skip",
            f"{path} is no Python script that could be read." if path else "No script was named.",
        )
    elif script_facts.records:
        results.add(
            "diag.errfile",
            "ok",
            "The script's main is decorated with @record: torchrun writes the first error of each"
            " rank to a file.",
        )
    else:
        fix = (
            "from torch.distributed.elastic.multiprocessing.errors import record, and @record above"
            " main(); torchrun --log-dir logs --redirects 3 --tee 3"
        )
        sentence = (
            "The script uses no @record: after a crash torchrun shows no traceback of the rank that"
            " failed first."
        )
        results.add("diag.errfile", "warn", sentence, fix=fix)


def timeouts(launch: checks.Launch, results: checks.Results) -> None:
    script_facts = script.read(os.environ.get("TRAINPROBE_SCRIPT", ""))
    own_s = script_facts.timeout_s if script_facts else None
    collective_s = own_s or (NCCL_TIMEOUT_S if has_gpu(launch) else GLOO_TIMEOUT_S)
    ends = dumps.number("SLURM_JOB_END_TIME")
    heartbeat_s = dumps.number("TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC")
    wait_s = (dumps.number("TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC") or WAIT_DUMP_MS) / 1000
    watched = os.environ.get("TORCH_NCCL_ENABLE_MONITORING", "1") != "0"
    wrong = []
    if ends and 0 < ends - time.time() <= collective_s:
        wrong.append(
            f"the scheduler ends the job in {ends - time.time():.0f} s, before a collective times"
            f" out ({collective_s:g} s)"
        )
    if watched and heartbeat_s and heartbeat_s <= wait_s:
        wrong.append(
            f"the heartbeat ({heartbeat_s:g} s) ends a rank while its dump may take {wait_s:g} s"
        )
    if watched and heartbeat_s and own_s and heartbeat_s < own_s:
        wrong.append(
            f"the heartbeat ({heartbeat_s:g} s) ends a rank before a collective times out"
            f" ({own_s:g} s)"
        )
    fix = (
        "init_process_group(timeout=timedelta(minutes=5)); export"
        " TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=600"
    )
    value = {"collective_s": collective_s, "heartbeat_s": heartbeat_s, "ends": ends}
    sentence = (
        f"Time-outs: {'; '.join(wrong) or 'none ends the job before the evidence is written'}."
    )
    results.add("diag.timeouts", "warn" if wrong else "ok", sentence, value, fix=fix)


def cores(launch: checks.Launch, results: checks.Results) -> None:
    soft = resource.getrlimit(resource.RLIMIT_CORE)[0]
    pattern = kernel_files.line(launch.root, "/proc/sys/kernel/core_pattern")
    sentence = (
        f"Core dumps: limit {'unlimited' if soft < 0 else soft}, pattern {pattern or 'unknown'}."
    )
    results.add("diag.core", "ok", sentence, [soft, pattern])


CHECKS = (
    checks.Check(("diag.recorder",), dumps.recorder),
    checks.Check(("diag.dump",), dumps.dump),
    checks.Check(("diag.ptrace",), ptrace),
    checks.Check(("diag.ras",), ras),
    checks.Check(("diag.faulthandler",), stacks),
    checks.Check(("diag.errfile",), error_file),
    checks.Check(("diag.timeouts",), timeouts),
    checks.Check(("diag.core",), cores),
)

if __name__ == "__main__":
    checks.run(CHECKS, __doc__ or "", "A job that hangs here can be diagnosed.")
