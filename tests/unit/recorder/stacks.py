"""Stack dumps as four tools write them, of the same two places: inside all_reduce, and in a
user's own loop.
"""

from __future__ import annotations

import json

TORCH = "/opt/venv/lib/python3.11/site-packages/torch/distributed"
IN_ALL_REDUCE = [
    ("all_reduce", f"{TORCH}/distributed_c10d.py", 3252),
    ("reduce_loss", "/home/user/train.py", 22),
    ("<module>", "/home/user/train.py", 91),
]
ELSEWHERE = [
    ("load_next", "/home/user/data.py", 40),
    ("main", "/home/user/train.py", 40),
    ("<module>", "/home/user/train.py", 91),
]
Places = list[tuple[str, str, int]]


def py_spy(pid: int, frames: Places) -> str:
    short = [
        (name, file.rsplit("/site-packages/", 1)[-1].replace("/home/user/", ""), line)
        for name, file, line in frames
    ]
    lines = "".join(f"    {name} ({file}:{line})\n" for name, file, line in short)
    other = (
        'Thread 999 (idle): "Thread-1 (pump)"\n    wait (threading.py:320)\n    Thread.run'
        " (threading.py:982)\n"
    )
    return (
        f"Process {pid}: python train.py\nPython v3.11.7 (/usr/bin/python3.11)\n\nThread {pid}"
        f' (idle): "MainThread"\n{lines}{other}'
    )


def py_spy_json(pid: int, frames: Places) -> str:
    rows = [
        {"name": name, "filename": file, "line": line, "module": None}
        for name, file, line in frames
    ]
    thread = {
        "pid": pid,
        "thread_id": 1,
        "thread_name": "MainThread",
        "os_thread_id": pid,
        "active": False,
        "owns_gil": False,
        "frames": rows,
    }
    return json.dumps(
        [{**thread, "thread_name": "pump", "os_thread_id": pid + 9, "frames": []}, thread]
    )


def faulthandler(pid: int, frames: Places) -> str:
    lines = "".join(f'  File "{file}", line {line} in {name}\n' for name, file, line in frames)
    pump = '  File "/usr/lib/python3.11/threading.py", line 320 in wait\n'
    return (
        f"Timeout (0:10:00)!\nThread 0x00007f{pid:08x} (most recent call first):\n{pump}\nThread"
        f" 0x00007e{pid:08x} (most recent call first):\n{lines}"
    )


def pystack(pid: int, frames: Places) -> str:
    lines = "".join(
        f'    (Python) File "{file}", line {line}, in {name}\n        call()\n'
        for name, file, line in reversed(frames)
    )
    return (
        f"Traceback for thread {pid} (python) [] (most recent call last):\n{lines}\nTraceback for"
        f" thread {pid + 3} (pump) [] (most recent call last):\n"
    )


def gdb(pid: int, frames: Places) -> str:
    waits = (
        "c10d::Work::wait(std::chrono::duration<long, std::ratio<1l, 1000l> >) () from"
        " /opt/venv/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so"
    )
    leaf = (
        waits
        if frames is IN_ALL_REDUCE
        else "time_sleep (self=<optimized out>, timeout_obj=0x1) at ./Modules/timemodule.c:383"
    )
    return (
        f"[New LWP {pid + 1}]\nThread 2 (Thread 0x7f5dd37fe6c0 (LWP {pid + 1})"
        ' "pt_gloo_runloop"):\n#0  0x00007f5dea79c856 in gloo::(anonymous'
        " namespace)::ring(std::function<void (unsigned long)>) () from /opt/libgloo.so\n\nThread"
        f' 1 (Thread 0x7f5df91bdb80 (LWP {pid}) "python"):\n#0  0x00007f5df8a9af7b in {leaf}\n#1 '
        " 0x00007f5df8d58ba3 in _PyEval_EvalFrameDefault (tstate=<optimized out>, frame=0x7f) at"
        " Python/ceval.c:4769\n"
    )


FORMS = {
    "py_spy": py_spy,
    "py_spy_json": py_spy_json,
    "faulthandler": faulthandler,
    "pystack": pystack,
    "gdb": gdb,
}
