"""One rank is gone, and the others wait for its part of a checkpoint, or at the start."""

from __future__ import annotations

from tests.gallery.live.generated.fault import (
    PATIENT,
    Act,
    Fault,
    Situation,
    mechanism,
    one,
    under,
)  # fmt: skip

PARTS = {"save": "parts"}
LOOPS = ("ddp", "fsdp2", "tp", "datasets")
SILENT = ("rank-killed", "rank-exited-early", "native-crash", "user-exception")


def _also(s: Situation, cause: str, *more: str) -> tuple[str, ...]:
    """Nothing tells how a silent rank ended once it was waited for: a shell does so at once, the
    other launchers in the order of the ranks.
    """
    silent = SILENT if s.launcher == "bash" or s.rank == 0 else ()
    return tuple(id_ for id_ in dict.fromkeys((*more, *silent)) if id_ != cause)


@mechanism(
    "ended",
    places=("ckpt",),
    frameworks=LOOPS,
    launchers=(*PATIENT, "torchrun", "torchrun-logs", "spawn"),
    options=PARTS,
)
def leaves_with_success(s: Situation) -> Fault:
    code = under(
        s.when, f'$say("time budget used up")\n{s.rng.choice(["sys.exit(0)", "raise SystemExit"])}'
    )
    cause = "rank-exited-early"
    return Fault(cause, one(s.rank), also=_also(s, cause), code=code)


@mechanism("ended", places=("ckpt",), frameworks=LOOPS, launchers=PATIENT, options=PARTS)
def leaves_with_an_exception(s: Situation) -> Fault:
    raised = s.rng.choice(
        [
            "raise ValueError(f'no weights for {$step}')",
            "sizes = {}\nsizes['head'] += 1",
            "torch.ones(3) @ torch.ones(4)",
        ]
    )
    return Fault("user-exception", one(s.rank), code=under(s.when, raised))


@mechanism("ended", places=("ckpt",), frameworks=LOOPS, launchers=PATIENT, options=PARTS)
def leaves_by_exit_3(s: Situation) -> Fault:
    code = under(s.when, "os._exit(3)")
    cause = "rank-exited-early"
    return Fault(cause, one(s.rank), also=_also(s, cause, "user-exception"), code=code)


@mechanism("ended", places=("ckpt",), frameworks=LOOPS, launchers=PATIENT, options=PARTS)
def native_crash(s: Situation) -> Fault:
    crash = s.rng.choice(["ctypes.string_at(8)", "ctypes.CDLL(None).abort()"])
    code = under(s.when, crash)
    return Fault(
        "native-crash",
        one(s.rank),
        also=_also(s, "native-crash"),
        code=code,
        imports="import ctypes\n",
    )


@mechanism("ended", places=("ckpt",), frameworks=LOOPS, launchers=PATIENT, options=PARTS)
def killed_from_outside(s: Situation) -> Fault:
    definitions = """
def $prepare(path):
    with open(path, "wb") as out:
        for part in range(600):
            out.write(bytes(4096))
            out.flush()
            time.sleep(0.05)

"""
    code = under(s.when, '$prepare(f"$ckpt/moments_{$rank}.bin")')
    act = Act("KILL", "rank", s.rank, once_exists=f"$ckpt/moments_{s.rank}.bin")
    also = _also(s, "rank-killed")
    return Fault("rank-killed", one(s.rank), also=also, code=code, definitions=definitions, act=act)


@mechanism("ended", places=("setup",), frameworks=LOOPS, launchers=(*PATIENT, "torchrun", "spawn"))
def leaves_before_the_start(s: Situation) -> Fault:
    code = under(s.who, '$say("no rows for this part")\nsys.exit(0)')
    cause = "rank-exited-early"
    also = _also(s, cause, "rendezvous-incomplete")
    return Fault(cause, one(s.rank), also=also, code=code, first_steps=0)
