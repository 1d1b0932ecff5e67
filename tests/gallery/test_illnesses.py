"""Each planted illness, run for real under the whole tool, comes out as the first cause with the
right rank.

The scripts run under random names, with the culprit's rank varied; what the tool is told is what a
user would type.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import MakeCgroup, RunTool, ToolRun
from tests.gallery.outsider import send_when_training
from tests.gallery.specimens import PACE, TORCHRUN_ON_PATH, command, plant

pytestmark = [pytest.mark.torch, pytest.mark.slow]
MIB = 2**20


@dataclass(frozen=True)
class Row:
    """One planted illness; ranks are [culprit] unless `ranks` says otherwise. `now` says in
    which form `make test` runs it, empty for none.
    """

    script: str
    cause: str
    verdict: str
    args: tuple[str, ...] = ()
    ranks: tuple[int, ...] | None = None
    now: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "-".join((self.script, *(word.strip("-") for word in self.args)))


ROWS = [
    Row("shard_never_ready", "rank-stuck", "hung", now=("own",)),
    Row("shard_never_ready", "rank-stuck", "hung", ("--spin",)),
    Row("metrics_broadcast", "rank-conditional-collective", "hung", now=("torchrun",)),
    Row("barrier_for_checkpoint", "rank-conditional-collective", "hung"),
    Row("evaluation_gather", "rank-conditional-collective", "hung"),
    Row("extra_all_reduce", "rank-conditional-collective", "crashed"),
    Row("histogram_on_chief", "rank-conditional-collective", "crashed"),
    Row("skipped_reduction", "rank-conditional-collective", "crashed"),
    Row("uneven_loss_vector", "collective-shape-mismatch", "crashed", now=("own",)),
    Row("uneven_loss_vector", "collective-shape-mismatch", "crashed", ("--size", "40")),
    Row("unpadded_predictions", "collective-shape-mismatch", "crashed"),
    Row("null_record", "native-crash", "crashed", now=("own",)),
    Row("null_record", "native-crash", "crashed", ("--through", "strlen")),
    Row("missing_label", "user-exception", "crashed", now=("own",)),
    Row("budget_reached", "rank-exited-early", "crashed"),
    Row("returns_at_end_of_file", "rank-exited-early", "crashed"),
]


def diagnose(run_tool: RunTool, words: Sequence[str], **how: object) -> ToolRun:
    rung = [
        "--nproc",
        "3",
        "--only",
        "user_script",
        "--config",
        str(PACE),
        "--python",
        sys.executable,
    ]
    return run_tool("diagnose", *rung, "--", *words, env=TORCHRUN_ON_PATH, timeout_s=150, **how)


def assert_named(done: ToolRun, cause: str, ranks: Sequence[int], verdict: str) -> None:
    first = done.first_cause
    assert (
        first.get("id"),
        sorted(first.get("ranks", [])),
        done.report.get("verdict"),
        done.exit_code,
    ) == (cause, list(ranks), verdict, 1), f"\n{done}"
    assert first["named"], f"\n{done}"


def table() -> list[object]:
    """Every row in both command forms and with two culprits. `make test` runs most causes once,
    and each form; `make soak` all.
    """
    rows: list[object] = []
    for row in ROWS:
        for form, culprit in (("own", 1), ("torchrun", 2), ("own", 2), ("torchrun", 1)):
            now = form in row.now and (form, culprit) in {("own", 1), ("torchrun", 2)}
            rows.append(
                pytest.param(
                    row,
                    form,
                    culprit,
                    id=f"{row}-{form}-{culprit}",
                    marks=() if now else pytest.mark.soak,
                )
            )
    return rows


def in_soak(*values: object) -> object:
    return pytest.param(*values, marks=pytest.mark.soak)


@pytest.mark.parametrize(("row", "form", "culprit"), table())
def test_planted_in_the_script(
    row: Row, form: str, culprit: int, run_tool: RunTool, job_folder: Path
) -> None:
    script = plant("illnesses", row.script, job_folder)
    done = diagnose(run_tool, command(form, script, "--pick", str(culprit), *row.args))
    assert_named(done, row.cause, [culprit], row.verdict)


@pytest.mark.soak
@pytest.mark.parametrize(
    "row",
    [
        row
        for row in ROWS
        if row.script in {"shard_never_ready", "missing_label", "null_record"} and not row.args
    ],
    ids=str,
)
def test_rank_zero_is_blamed_where_it_is_at_fault(
    row: Row, run_tool: RunTool, job_folder: Path
) -> None:
    """Rank 0 alone shows these already on one rank."""
    script = plant("illnesses", row.script, job_folder)
    assert_named(
        diagnose(run_tool, command("own", script, "--pick", "0")), row.cause, [0], row.verdict
    )


@pytest.mark.parametrize(
    ("number", "cause", "verdict", "form", "culprit"),
    [
        (signal.SIGKILL, "rank-killed", "crashed", "own", 1),
        in_soak(signal.SIGSTOP, "process-stopped", "hung", "torchrun", 2),
        in_soak(signal.SIGKILL, "rank-killed", "crashed", "torchrun", 2),
        in_soak(signal.SIGSTOP, "process-stopped", "hung", "own", 1),
    ],
)
def test_a_signal_from_outside(
    number: signal.Signals,
    cause: str,
    verdict: str,
    form: str,
    culprit: int,
    run_tool: RunTool,
    job_folder: Path,
) -> None:
    script = plant("illnesses", "heartbeat_loop", job_folder)
    beats = job_folder / "beats"
    sender = threading.Thread(target=send_when_training, args=(beats, culprit, 10, number))
    sender.start()
    done = diagnose(run_tool, command(form, script, "--heartbeat", str(beats)))
    sender.join()
    assert_named(done, cause, [culprit], verdict)


@pytest.mark.root
@pytest.mark.parametrize(("form", "culprit"), [("own", 1), in_soak("torchrun", 2)])
def test_a_rank_outgrows_its_cgroup(
    form: str, culprit: int, run_tool: RunTool, job_folder: Path, memory_cgroup: MakeCgroup
) -> None:
    script = plant("illnesses", "keeps_every_output", job_folder)
    limited = memory_cgroup(2600 * MIB)
    done = diagnose(
        run_tool,
        command(form, script, "--pick", str(culprit), "--mib-per-step", "96"),
        cgroup=limited,
    )
    assert_named(done, "host-oom-killed", [culprit], "crashed")


@pytest.mark.parametrize("form", [in_soak("own"), "torchrun"])
def test_loader_workers_run_out_of_descriptors(
    form: str, run_tool: RunTool, job_folder: Path
) -> None:
    script = plant("illnesses", "hoarding_loader", job_folder)
    done = diagnose(run_tool, command(form, script), nofile=192)
    assert_named(done, "fd-exhaustion", [], "crashed")


@pytest.mark.parametrize("form", ["own", in_soak("torchrun")])
def test_an_empty_loader(form: str, run_tool: RunTool, job_folder: Path) -> None:
    script = plant("illnesses", "everything_filtered_out", job_folder)
    assert_named(diagnose(run_tool, command(form, script)), "no-steps-run", [], "crashed")


def import_one(run_tool: RunTool, module: Path, **how: object) -> ToolRun:
    argv = [
        "diagnose",
        "--nproc",
        "3",
        "--only",
        "import_memory",
        "--imports",
        module.stem,
        "--python",
        sys.executable,
    ]
    return run_tool(
        *argv,
        env={
            "PYTHONPATH": f"{module.parent}:{os.environ.get('PYTHONPATH', '')}",
            "TABLE_MIB": "300",
        },
        timeout_s=150,
        **how,
    )


@pytest.mark.parametrize(
    ("module", "cause"),
    [
        in_soak("sleeps_at_import", "import-hang"),
        ("waits_at_import", "import-hang"),
        ("raises_at_import", "import-failure"),
    ],
)
def test_an_import_that_does_not_come_back_or_raises(
    module: str, cause: str, run_tool: RunTool, job_folder: Path
) -> None:
    done = import_one(run_tool, plant("modules", module, job_folder))
    assert (done.first_cause.get("id"), done.exit_code, done.first_cause.get("ranks")) == (
        cause,
        1,
        [],
    ), f"\n{done}"


@pytest.mark.root
def test_imports_at_once_outgrow_a_cgroup_in_which_one_fits(
    run_tool: RunTool, job_folder: Path, memory_cgroup: MakeCgroup
) -> None:
    done = import_one(
        run_tool, plant("modules", "large_at_import", job_folder), cgroup=memory_cgroup(760 * MIB)
    )
    assert (done.first_cause.get("id"), done.exit_code, done.first_cause.get("ranks")) == (
        "import-storm",
        1,
        [],
    ), f"\n{done}"
