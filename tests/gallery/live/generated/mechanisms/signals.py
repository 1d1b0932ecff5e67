"""A process is stopped from outside."""

from __future__ import annotations

from tests.gallery.live.generated.fault import Act, Fault, Situation, mechanism, one, under

LAUNCHERS = (
    "torchrun",
    "torchrun-logs",
    "module",
    "spawn",
    "processes",
    "bash",
    "popen",
    "accelerate",
)


@mechanism("stopped", places=("outside",), launchers=LAUNCHERS)
def rank_that_is_stopped(s: Situation) -> Fault:
    return Fault("process-stopped", one(s.rank), act=Act("STOP", "rank", s.rank, s.step))


@mechanism("stopped", places=("outside",), launchers=LAUNCHERS, workers=True)
def worker_that_is_stopped(s: Situation) -> Fault:
    also = ("data-worker-stuck",)
    act = Act("STOP", "worker", s.rank, s.step)
    return Fault("process-stopped", one(s.rank), also=also, act=act)


@mechanism("stopped", places=("loop", "after"), launchers=LAUNCHERS)
def helper_that_is_stopped(s: Situation) -> Fault:
    helper = """import sys

for line in sys.stdin:
    print(len(line), flush=True)
"""
    definitions = """
$pipe = []


def $prepare(text):
    if not $pipe:
        command = [sys.executable, "$aside.py"]
        $pipe.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    $pipe[0].stdin.write(text + "\\n")
    $pipe[0].stdin.flush()
    return int($pipe[0].stdout.readline())

"""
    code = under(s.who, '$prepare(f"{$step} {time.time():.1f}")')
    return Fault(
        "process-stopped",
        one(s.rank),
        also=("queue-deadlock",),
        code=code,
        definitions=definitions,
        files={"$aside.py": helper},
        act=Act("STOP", "helper", s.rank, s.step),
    )
