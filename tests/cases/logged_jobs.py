"""Golden cases of `explain` on logs that were written by hand, laid out as a job leaves them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.cases.live_jobs import LiveRecipe, trainprobe_in
from tests.unit.waits.logs_by_hand import STEPS, closed, table, traceback, watchdog


def of_logs(files: dict[str, str]) -> Callable[[Path], Path]:
    """Explain these files by name."""

    def make(folder: Path) -> Path:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return trainprobe_in(folder, "explain", *files)

    return make


FIRST = STEPS + closed(0) + traceback("KeyError", "'label'", prefix="[rank1]: ") + table((1, 1), (0, 1))
GAVE_UP = STEPS + "".join(watchdog(rank, 12, "ALLREDUCE", 512) for rank in (0, 2, 3)) + watchdog(1, 12, "ALLREDUCE", 500)
FINISHED = STEPS + "[rank0]: step 100/100 loss 0.1\n[rank0]: Training completed.\n"

LOGGED = {
    "explain-log-first-traceback": LiveRecipe("crashed", "user-exception", (1,), of_logs({"torchrun.log": FIRST})),
    "explain-log-sizes-differ": LiveRecipe("hung", "collective-shape-mismatch", (1,), of_logs({"job.log": GAVE_UP})),
    "explain-log-finished": LiveRecipe("healthy", "", (), of_logs({"job.log": FINISHED})),
}
