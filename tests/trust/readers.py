"""Every reader of what somebody else wrote, with a few right inputs to change."""

from __future__ import annotations

import json
import pickle
import re
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from trainprobe.collect import (
    cgroup,
    collectives,
    dump_files_child,
    processes,
    procfs,
    pyspy,
    rank_locals,
    samples,
)
from trainprobe.collect.collectors import (
    deadlines,
    kernel_log,
    locks,
    output,
    ports,
    pressure,
    ras,
    sockets,
    source,
    worker_server,
)
from trainprobe.collect.dump_files import read_dump_content
from trainprobe.config import settings_of
from trainprobe.errors import UsageError
from trainprobe.facts import compared_calls, kernel_logs, steps, torchrun_report
from trainprobe.ladder import events
from trainprobe.lint import ignores, limits, reading
from trainprobe.logs import environment_reports, notebooks
from trainprobe.logtext import joined_lines, streams
from trainprobe.nodes.answers import Accept, read_answer
from trainprobe.redact import Redactor, clean
from trainprobe.sbatch import directives, manifest_rules, manifests, numbers, shell
from trainprobe.signatures import find
from trainprobe.site import site_of
from trainprobe.stacks import faulthandler_text, stack_text, traceback_text
from trainprobe.targets import host_names, kube_pods, slurm_site


class Reader(NamedTuple):
    """`may_raise`: what its docstring says it raises."""

    name: str
    read: Callable[[str], object]
    seeds: tuple[str, ...]
    may_raise: tuple[type[BaseException], ...] = ()
    at_once: int = 20


def of_bytes(read: Callable[[bytes], object]) -> Callable[[str], object]:
    """Signs below 256 become bytes, so that a changed pickle stays one."""
    return lambda text: read(
        text.encode("latin-1") if text.isascii() or max(text) < "Ā" else encoded(text)
    )


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def of_lines(read: Callable[[list[str]], object]) -> Callable[[str], object]:
    return lambda text: read(text.split("\n"))


STACK = {"frames": [{"name": "f", "filename": "/w/t.py", "line": 3, "locals": None}]}
THREAD = {"pid": 7, "thread_id": 9, "thread_name": "MainThread", "os_thread_id": 7, "active": True}
ENTRY = {
    "record_id": 1,
    "pg_id": 0,
    "process_group": ("0", "default_pg"),
    "collective_seq_id": 4,
    "p2p_seq_id": 0,
    "op_id": 4,
    "profiling_name": "nccl:all_reduce",
    "state": "started",
    "input_sizes": [[4, 4]],
    "output_sizes": [[4, 4]],
    "input_dtypes": ["Float"],
    "time_created_ns": 1,
    "time_discovered_started_ns": None,
    "retired": False,
    "frames": [{"name": "f", "filename": "t.py", "line": 3}],
    "timeout_ms": 600000,
}
DUMP = {
    "version": "2.10",
    "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
    "pg_status": {"0": {"last_enqueued_collective": 4, "last_completed_collective": 3}},
    "entries": [ENTRY],
}
RECORD = {
    "id": "E1",
    "kind": "node.look",
    "subject": {"kind": "job"},
    "cell": "job",
    "source": "x",
    "began": 1.0,
    "took_s": 0.1,
    "outcome": "ok",
    "reason": "",
    "data": {"a": [1]},
    "files": [],
}
TRACEBACK = """[rank1]: Traceback (most recent call last):
[rank1]:   File "/w/train.py", line 12, in <module>
[rank1]:     x = d["a"]
[rank1]:         ~^^^^^
[rank1]: KeyError: 'a'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/w/train.py", line 13, in main
RuntimeError: Caught KeyError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "/w/data.py", line 3, in f
KeyError: 3
"""
FAULT = """Fatal Python error: Segmentation fault

Thread 0x00007f1c (most recent call first):
  File "/w/train.py", line 12 in step
  File "/w/train.py", line 20 in <module>

Current thread 0x00007f2d (most recent call first):
  Garbage-collecting
  File "/w/train.py", line 9 in f

Extension modules: numpy.core (total: 1)
"""
STACKS = """Process 12: python train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 12 (idle): "MainThread"
    wait (threading.py:320)
    step (train.py:12)

Traceback for thread 13 (python) [] (most recent call last):
    (Python) File "/w/train.py", line 12, in main
        step()

#0  0x00007f in poll () from /lib/libc.so.6
#1  0x00007f in c10d::TCPStore::wait (this=0x0) at /pytorch/store.cpp:12
Thread 2 (Thread 0x7f (LWP 13) "python"):
#0  futex_wait (x=1) at futex.c:3
"""
SBATCH = """#!/bin/bash
#SBATCH --nodes=2 --gpus-per-node=4
#SBATCH -t 1-02:03:04
#SBATCH --mem=64G
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
if [ "$X" = "a b" ]; then LIST=(1 2 3); fi
cat <<'END'
text
END
srun --ntasks=$((2 * 4)) torchrun --nnodes=2 --nproc-per-node=4 \\
  train.py "${LIST[@]}" --lr 1e-3 > out.txt 2>&1 &
wait
"""
MANIFEST = """apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  completions: 2
  template:
    spec:
      containers:
        - name: c
          image: x
          command: ["torchrun", "--nnodes=2", "train.py"]
          resources: {limits: {nvidia.com/gpu: 4}}
"""
STAT = "7 (python) S 1 7 7 0 -1 4194560 1 0 2 0 3 4 0 0 20 0 9 0 55 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20\n"
INET = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000 0 12345 1 0\n"
UNIX = "Num       RefCount Protocol Flags    Type St Inode Path\n0000000000000000: 00000002 00000000 00010000 0001 01 12345 /run/x.sock\n"
LOCKS = "1: POSIX  ADVISORY  WRITE 123 08:01:456 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 124 08:01:456 0 EOF\n"
LOG = """W0517 12:30:59.123 7 torch/distributed/run.py:766] Setting OMP_NUM_THREADS
[rank3]:[E517 12:30:59.1 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 milliseconds before timing out.
E torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 1 (pid: 123) of binary: /usr/bin/python
train.py FAILED
Root Cause (first observed failure):
[0]:
  time      : 2026-05-17_12:30:59
  host      : node1
  rank      : 1 (local_rank: 1)
  exitcode  : -9 (pid: 123)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 123
Epoch 1:  45%|████▌     | 450/1000 [10:00<12:13, 1.33s/it, loss=2.1]
"""
KERNEL = "[Sun May 17 12:30:59 2026] NVRM: Xid (PCI:0000:3b:00): 79, pid=123, GPU has fallen off the bus.\n[  123.456789] Out of memory: Killed process 123 (python) total-vm:1kB, anon-rss:2kB\n"
RAS = """Job summary
===========
 Nodes  Processes         GPUs  Processes     GPUs
 total   per node  per process      total    total
     2          4            1          8        8

Communicators... (0.00s)
=============
Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         2         4         8         8   RUNNING      OK

Errors
======
#0-0 (0123456789abcdef) MISMATCH
  Communicator ranks have different collective operation counts
  1 ranks have launched up to operation 5
"""
NOTEBOOK = {"cells": [{"cell_type": "code", "source": ["!torchrun x\n"], "outputs": [{"output_type": "stream", "text": ["a\n"]}]}], "nbformat": 4}  # fmt: skip
PODS = {"items": [{"metadata": {"name": "p-0", "namespace": "d"}, "spec": {"containers": [{"name": "c"}], "nodeName": "n"}, "status": {"phase": "Running"}}]}  # fmt: skip
SCONTROL = "JobId=12 JobName=x\n   UserId=a(1) JobState=RUNNING RunTime=00:10:00 TimeLimit=1-00:00:00 StartTime=2026-05-17T12:00:00 EndTime=2026-05-18T12:00:00 NodeList=n[1-4]\n"
ACCEPT = Accept(frozenset(("node.look", "process")), "job", "node.look", re.compile(".*"))
BEGIN = '{"schema": "trainprobe.answer/1", "says": "begin", "host": "n", "now": 1.0}\n'
END = '{"schema": "trainprobe.answer/1", "says": "end", "now": 2.0}\n'
PROGRAM = "import torch.distributed as dist\nif dist.get_rank() == 0:  # trainprobe: ignore[a]\n    dist.barrier()\n"
EVENTS = '{"event": "start", "at": 1.0, "name": "x", "rank": 0}\n{"event": "fail", "at": 2.0, "says": "a"}\n'


def _redacted(text: str) -> object:
    redactor = Redactor({})
    shown, count = redactor.text(clean(text))
    assert count or shown == clean(text)
    return redactor.data([text, {text[:50]: text}])


def _latin(content: bytes) -> str:
    return content.decode("latin-1")


READERS: list[Reader] = [
    Reader("tracebacks", of_lines(traceback_text.parse_tracebacks), (TRACEBACK,)),
    Reader("faulthandler", of_lines(faulthandler_text.parse_deaths), (FAULT, STACKS)),
    Reader("stack text", stack_text.parse_stack_text, (STACKS, FAULT)),
    Reader(
        "py-spy",
        of_bytes(lambda raw: (pyspy.parse(raw, 7), rank_locals.parse(raw, 7))),
        (json.dumps([{**THREAD, **STACK}]), json.dumps([{**THREAD, "frames": []}])),
    ),
    Reader("samples", of_bytes(lambda raw: samples.parse(raw, 7)), (json.dumps([{**THREAD, **STACK}]),)),
    Reader(
        "flight recorder json",
        lambda text: dump_files_child.read_dump(b"{" + encoded(text)),
        (json.dumps(DUMP)[1:],),
        dump_files_child._UNREADABLE,
    ),
    Reader(
        "flight recorder pickle",
        of_bytes(lambda raw: read_dump_content(raw, time.monotonic() + 10)),
        (_latin(pickle.dumps(DUMP, 2)),),
        at_once=1,  # each in a child of its own, as in use
    ),
    Reader("ring of calls", of_bytes(collectives.parse_ring), ("\x01" + json.dumps({"at": 1.0}) + "\0" * 600,)),
    Reader("ras text", ras.parse_text, (RAS,)),
    Reader("ras json", ras.parse_json, (json.dumps({"job_summary": {}, "communicators": [{"ranks": []}]}),)),
    Reader("worker server", lambda text: worker_server.counters(_json(text)), ('{"a": {"count": 1}}',)),
    Reader("proc stat", procfs.parse_stat, (STAT,), (ValueError,)),
    Reader("proc status", procfs.status_fields, ("Name:\tpython\nUid:\t0\t0\t0\t0\n",)),
    Reader("proc schedstat", procfs.parse_schedstat, ("123 456 7\n",)),
    Reader("proc io", processes.parse_io, ("rchar: 1\nwchar: 2\n",)),
    Reader("proc stack", processes.parse_kernel_stack, ("[<0>] futex_wait+0x1/0x2\n",)),
    Reader("pressure", cgroup.parse_pressure, ("some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",)),
    Reader("cpu.stat", lambda text: pressure.parse_cpu_stat(text, 2), ("usage_usec 1\nnr_throttled 2\n",)),
    Reader("locks", locks.parse, (LOCKS,)),
    Reader("inet", lambda text: (sockets.parse_inet("tcp", text), sockets.parse_inet("tcp6", text)), (INET,)),
    Reader("unix", lambda text: sockets.parse_unix(text, {}), (UNIX,)),
    Reader("interfaces", ports.parse_interfaces, ("Inter-|   Receive |\n face |bytes\n  eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n",)),
    Reader("kmsg", of_bytes(lambda raw: kernel_log.parse_kmsg(raw, 1.0)), ("6,123,456789,-;NVRM: Xid 79\n SUBSYSTEM=x\n",)),
    Reader("dmesg", lambda text: kernel_log.parse_dmesg(text, 1.0), (KERNEL,)),
    Reader("journal", kernel_log.parse_journal, ("2026-05-17T12:30:59+0000 n kernel: NVRM: Xid 79\n", '{"MESSAGE": "x"}')),
    Reader("kernel lines", lambda text: [kernel_logs.kernel_fact(line, {}, 1.0) for line in text.split("\n")], (KERNEL,)),
    Reader("scontrol", deadlines.parse_scontrol, (SCONTROL,)),
    Reader("slurm.conf", lambda text: (slurm_site.config_of(text), slurm_site.rows_of(text, ("A", "B"))), (SCONTROL, "A|B\n1|2\n")),
    Reader("host names", lambda text: host_names.host_names("--hosts", text), ("n[1-4,7],m", "all"), (UsageError,)),
    Reader("pods", of_bytes(kube_pods.pods_of), (json.dumps(PODS),), (UsageError,)),
    Reader("answers", of_bytes(lambda raw: read_answer(raw, ACCEPT)), (BEGIN + json.dumps(RECORD) + "\n" + END,)),
    Reader("probe events", of_bytes(events.parse), (EVENTS,)),
    Reader("sites in text", source.sites_in_text, (TRACEBACK, STACKS)),
    Reader("common output", lambda text: output.split_by_rank(text, {0, 1}), (TRACEBACK, LOG)),
    Reader("joined lines", joined_lines.split_joined, (LOG,)),
    Reader("streams", streams.split_ranks, (LOG, TRACEBACK)),
    Reader("signatures", find, (LOG, KERNEL)),
    Reader("torchrun report", torchrun_report.failures, (LOG,)),
    Reader("steps", steps.steps_printed, (LOG,)),
    Reader("finger prints", lambda text: list(compared_calls.finger_prints(text)), (LOG,)),
    Reader("environment report", environment_reports.read_environment_report, ("export A=1\nmax locked memory (kbytes, -l) unlimited\nPyTorch version: 2.6.0\n",)),
    Reader("notebook outputs", of_bytes(lambda raw: notebooks.is_notebook(raw.decode("utf-8", "replace")) and notebooks.printed_output(raw)), (json.dumps(NOTEBOOK),), (ValueError,)),
    Reader("sbatch directives", lambda text: (directives.directives(text), directives.split_directive(text)), (SBATCH,), (ValueError,)),
    Reader("shell", lambda text: list(shell.commands(text)), (SBATCH,)),
    Reader("numbers", lambda text: [read(text) for read in (numbers.minutes, numbers.megabytes, numbers.whole, numbers.node_range, numbers.gpu_count, numbers.gres_gpus, numbers.hosts)], ("1-02:03:04", "64G", "2-4", "gpu:a100:4(S:0-1)", "n[1-4]")),
    Reader("manifest", lambda text: manifests.is_manifest(text) and (manifests.read_manifest(text), manifest_rules.check_manifest(text)), (MANIFEST,)),
    Reader("settings", lambda text: settings_of(text, "x.yaml"), ("timeout: 3\n", "a: [1, {b: c}]\n"), (UsageError,)),
    Reader("site", lambda text: site_of(text, "x.yaml"), ("name: x\n", "causes: []\n"), (UsageError,)),
    Reader("source", of_bytes(lambda raw: (limits.parsed(reading.decoded(raw), "x.py"), ignores.waivers(reading.decoded(raw)))), (PROGRAM,), (limits.Unreadable, ValueError)),
    Reader("secrets", _redacted, (LOG, "HF_TOKEN=abc\n-----BEGIN PRIVATE KEY-----\nAbc1\napi_key:\n  xyz123456\n")),
]  # fmt: skip


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
