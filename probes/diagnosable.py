# /// trainprobe
# rung: 12
# ladder: false
# ready: quick
# slots: [step]
# question: Could it be found out why this job hangs, if it did?
# scope: host
# needs: []
# timeout_s: 20
# climbs: []
# after: []
# means: Something that a diagnosis needs is off or forbidden. The job runs, and when it hangs less can be learnt.
# ///
"""Prove that the job will be diagnosable: what can be tried is tried, on processes and files of our own. Standard library only.

Flags and environment: see _ready/checking.py; TRAINPROBE_SCRIPT. Events: checks.
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
from _diagnosable import dumps, script, tracing  # isort: skip  # before _ready, which takes this folder off the path
from _ready import checking, child, places  # isort: skip

RAS_PORT = 28028  # NCCL user guide, RAS
NCCL_TIMEOUT_S, GLOO_TIMEOUT_S = 600.0, 1800.0  # torch/distributed/constants.py
WAIT_DUMP_MS = 15000  # ProcessGroupNCCL.cpp: TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC


def has_gpu(asked: checking.Asked) -> bool:
    return bool(places.found(asked.root, "/dev/nvidia[0-9]*"))


def ptrace(asked: checking.Asked, told: checking.Told) -> None:
    answer = child.ask(tracing.tried, told.threshold("diag.ptrace", 5.0))
    if answer.how != "answered":
        told.say("diag.ptrace", "unknown", f"Whether stacks may be read could not be tried: {answer.reply}.")
        return
    around: Any = {**tracing.surroundings(asked.root), **answer.reply}
    why = f"Yama's scope is {around['scope']}" if around["scope"] else "a seccomp filter or a missing capability forbids it"
    if not around["child"] and not around["other"]:
        told.say("diag.ptrace", "ok", "Stacks of processes of the same user may be read: a process that is no descendant was tried.", around)
        return
    who = "only by their own parent" if not around["child"] else "by nobody"
    fix = "sudo sysctl kernel.yama.ptrace_scope=0; in a container docker run --cap-add=SYS_PTRACE; or start the job with trainprobe run"
    told.say("diag.ptrace", "warn", f"Stacks of ranks may be read {who}: {around['other'] or around['child']}, {why}.", around, fix=fix)


def ras(asked: checking.Asked, told: checking.Told) -> None:
    if not has_gpu(asked):
        told.say("diag.ras", "skip", "No GPU is here, so that NCCL and its RAS are not used.")
        return
    host, _, port = os.environ.get("NCCL_RAS_ADDR", "").rpartition(":")
    where = (host or "localhost", int(port) if port.isdigit() else RAS_PORT)
    if os.environ.get("NCCL_RAS_ENABLE") == "0":
        told.say("diag.ras", "warn", "NCCL's RAS is off (NCCL_RAS_ENABLE=0): which ranks lag is not told.", where, fix="unset NCCL_RAS_ENABLE")
        return
    with contextlib.closing(socket.socket()) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(where)
        except OSError as error:
            fix = "export NCCL_RAS_ADDR=localhost:28029, or another free port"
            told.say("diag.ras", "warn", f"NCCL's RAS cannot listen on {where[0]}:{where[1]}: {error.strerror or error}.", where, fix=fix)
            return
    told.say("diag.ras", "ok", f"NCCL's RAS can listen on {where[0]}:{where[1]}.", where)


def stacks(_asked: checking.Asked, told: checking.Told) -> None:
    with tempfile.TemporaryFile() as file:
        faulthandler.dump_traceback(file)
        size = file.tell()
    by_itself = " and is on" if os.environ.get("PYTHONFAULTHANDLER") else ""
    told.say("diag.faulthandler", "ok" if size else "warn", f"faulthandler {'works' if size else 'writes nothing'}{by_itself}.", size, fix="use another Python")


def error_file(_asked: checking.Asked, told: checking.Told) -> None:
    path = os.environ.get("TRAINPROBE_SCRIPT", "")
    said = script.read(path) if path else None
    if said is None:
        told.say("diag.errfile", "skip", f"{path} is no Python script that could be read." if path else "No script was named.")
    elif said.records:
        told.say("diag.errfile", "ok", "The script's main is decorated with @record: torchrun writes the first error of each rank to a file.")
    else:
        fix = "from torch.distributed.elastic.multiprocessing.errors import record, and @record above main(); torchrun --log-dir logs --redirects 3 --tee 3"
        told.say("diag.errfile", "warn", "The script uses no @record: after a crash torchrun tells no traceback of the rank that failed first.", fix=fix)


def timeouts(asked: checking.Asked, told: checking.Told) -> None:
    said = script.read(os.environ.get("TRAINPROBE_SCRIPT", ""))
    own_s = said.timeout_s if said else None
    collective_s = own_s or (NCCL_TIMEOUT_S if has_gpu(asked) else GLOO_TIMEOUT_S)
    ends, heartbeat_s = dumps.number("SLURM_JOB_END_TIME"), dumps.number("TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC")
    wait_s = (dumps.number("TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC") or WAIT_DUMP_MS) / 1000
    watched = os.environ.get("TORCH_NCCL_ENABLE_MONITORING", "1") != "0"
    wrong = []
    if ends and 0 < ends - time.time() <= collective_s:
        wrong.append(f"the scheduler ends the job in {ends - time.time():.0f} s, before a collective times out ({collective_s:g} s)")
    if watched and heartbeat_s and heartbeat_s <= wait_s:
        wrong.append(f"the heartbeat ({heartbeat_s:g} s) ends a rank while its dump may take {wait_s:g} s")
    if watched and heartbeat_s and own_s and heartbeat_s < own_s:
        wrong.append(f"the heartbeat ({heartbeat_s:g} s) ends a rank before a collective times out ({own_s:g} s)")
    fix = "init_process_group(timeout=timedelta(minutes=5)); export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=600"
    value = {"collective_s": collective_s, "heartbeat_s": heartbeat_s, "ends": ends}
    told.say(
        "diag.timeouts", "warn" if wrong else "ok", f"Time-outs: {'; '.join(wrong) or 'none ends the job before the evidence is written'}.", value, fix=fix
    )


def cores(asked: checking.Asked, told: checking.Told) -> None:
    soft = resource.getrlimit(resource.RLIMIT_CORE)[0]
    pattern = places.line(asked.root, "/proc/sys/kernel/core_pattern")
    told.say("diag.core", "ok", f"Core dumps: limit {'unlimited' if soft < 0 else soft}, pattern {pattern or 'unknown'}.", [soft, pattern])


CHECKS = (
    checking.Check(("diag.recorder",), dumps.recorder),
    checking.Check(("diag.dump",), dumps.dump),
    checking.Check(("diag.ptrace",), ptrace),
    checking.Check(("diag.ras",), ras),
    checking.Check(("diag.faulthandler",), stacks),
    checking.Check(("diag.errfile",), error_file),
    checking.Check(("diag.timeouts",), timeouts),
    checking.Check(("diag.core",), cores),
)

if __name__ == "__main__":
    checking.make(CHECKS, __doc__ or "", "A job that hangs here can be looked into.")
