"""The ranks do not meet."""

from __future__ import annotations

from tests.gallery.live.generated.fault import Fault, Situation, mechanism, one, under

LOOPS = ("ddp", "fsdp2", "tp", "datasets", "dcp", "pipeline-by-hand", "pipeline-scheduled")


@mechanism("start", places=("outside",), frameworks=LOOPS, launchers=("bash", "popen"))
def too_large_a_world(s: Situation) -> Fault:
    return Fault(
        "world-size-mismatch",
        [[], [s.world]],
        also=("rendezvous-incomplete",),
        world_says=s.world + 1,
        first_steps=0,
    )


@mechanism(
    "start", places=("outside",), frameworks=LOOPS, launchers=("bash", "popen", "processes"), rank=0
)
def port_of_another(_: Situation) -> Fault:
    server = """import socket

kept = []
listener = socket.create_server(("", @PORT@), family=socket.AF_INET6, dualstack_ipv6=True)
while True:
    kept.append(listener.accept())
"""
    return Fault(
        "port-in-use",
        [[0], []],
        files={"$aside.py": server},
        beside=("$aside.py",),
        first_steps=0,
    )


@mechanism("start", places=("setup",), frameworks=LOOPS)
def one_rank_comes_late(s: Situation) -> Fault:
    definitions = """
def $prepare(path):
    while not os.path.exists(path):
        time.sleep(0.5)

"""
    return Fault(
        "rank-stuck",
        one(s.rank),
        also=("rendezvous-incomplete",),
        code=under(s.who, '$prepare("$artifact.done")'),
        definitions=definitions,
        first_steps=0,
    )
