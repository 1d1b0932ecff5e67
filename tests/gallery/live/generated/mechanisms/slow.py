"""Steps go on, slowly; or one rank works for minutes while the others wait."""

from __future__ import annotations

from tests.gallery.live.generated.fault import SLOW, Fault, Situation, mechanism, one, under


@mechanism("slow", places=("loop", "after", "hook"))
def one_rank_sleeps_each_step(s: Situation) -> Fault:
    code = under(f"{s.who} and $step >= 4", f"time.sleep({s.rng.uniform(0.6, 1.6):.2f})")
    return Fault("straggler-rank", one(s.rank), SLOW, code=code, settled="slow")


@mechanism("slow", places=("loop", "after"))
def one_rank_computes_more(s: Situation) -> Fault:
    definitions = f"""
def $clean(size):
    noise, until = torch.randn(size, size), time.perf_counter() + {s.rng.uniform(0.6, 1.5):.2f}
    while time.perf_counter() < until:
        noise = torch.tanh(noise @ noise)
    return noise

"""
    code = under(f"{s.who} and $step >= 4", "$clean(160)")
    return Fault(
        "straggler-rank", one(s.rank), SLOW, code=code, definitions=definitions, settled="slow"
    )


@mechanism("slow", places=("getitem", "collate"))
def data_of_one_rank_is_slow(s: Situation) -> Fault:
    pause = s.rng.uniform(0.08, 0.2) * (1 if s.place == "getitem" else 8)
    code = under(s.who, f"time.sleep({pause:.2f})")
    return Fault(
        "data-starvation", one(s.rank), SLOW, also=("straggler-rank",), code=code, settled="slow"
    )


@mechanism("slow", places=("getitem", "collate"))
def data_of_all_ranks_is_slow(s: Situation) -> Fault:
    pause = s.rng.uniform(0.08, 0.2) * (1 if s.place == "getitem" else 8)
    ranks = [[], list(range(s.world))]
    code = f"time.sleep({pause:.2f})"
    return Fault("data-starvation", ranks, SLOW, code=code, settled="slow")


@mechanism("slow", places=("loop", "after", "eval", "ckpt"), rank=0)
def long_task_of_the_main_rank(s: Situation) -> Fault:
    work = s.rng.choice(
        [
            "total += len(' '.join(str(random.random()) for _ in range(2000)))\n            time.sleep(0.02)",
            "total += float(torch.linalg.svdvals(torch.randn(90, 90)).sum())",
            "time.sleep(0.04)\n            total += part",
        ]
    )
    definitions = f"""
def $prepare():
    total = 0
    for chunk in range(5000):
        for part in range(20):
            {work}
        $say(f"{s.rng.choice(["packed", "tokenized", "scored"])} {{chunk}}/5000")
    return total

"""
    code = under(f"$step >= {s.step}", "if $rank == 0:\n    $prepare()\ndist.barrier()")
    # A healthy evaluation of the main rank looks the same at first.
    return Fault(
        "rank0-long-task", one(0), ("hung", "slow", "at-risk"), code=code,
        definitions=definitions, still_s=45.0,
    )  # fmt: skip
