"""How each golden case was made, and what is true of it. An expectation that says otherwise is
never accepted.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.cases.live_jobs import LIVE, LiveRecipe
from tests.cases.logged_jobs import LOGGED
from tests.gallery.outsider import send_when_training
from tests.gallery.specimens import PACE, TORCHRUN_ON_PATH, command, plant

PATIENCE_S = 240.0
Words = Callable[[Path], list[str]]
Meanwhile = Callable[[Path, "subprocess.Popen[bytes]"], None]


def nothing(_folder: Path, _tool: subprocess.Popen[bytes]) -> None:
    """Let the tool run to its end."""


@dataclass(frozen=True)
class Recipe:
    """One run of the tool in a folder of its own. `verdict`, `cause` (empty: none) and `ranks`
    are the truth about it.
    """

    verdict: str
    cause: str
    ranks: tuple[int, ...]
    words: Words
    meanwhile: Meanwhile = nothing


def on_script(nproc: int, form: str, specimen: str, *args: str, kind: str = "illnesses") -> Words:
    def words(folder: Path) -> list[str]:
        rung = [
            "--nproc",
            str(nproc),
            "--only",
            "user_script",
            "--config",
            str(PACE),
            "--python",
            sys.executable,
        ]
        return [*rung, "--", *command(form, plant(kind, specimen, folder), *args)]

    return words


def on_climb(program: str) -> Words:
    """The public command over ranks and rows on a program of tests/gallery/climbs, under a name
    that tells nothing.
    """

    def words(folder: Path) -> list[str]:
        source = (
            Path(__file__).resolve().parents[1]
            / "gallery"
            / "climbs"
            / "programs"
            / f"{program}.py"
        )
        shutil.copyfile(source, folder / "train.py")
        sizes = ["--ranks", "1,2", "--rows", "100,1000", "--ablate"]
        return [
            *sizes,
            "--only",
            "user_script",
            "--python",
            sys.executable,
            "--",
            "train.py",
            "--max_train_samples",
            "{rows}",
        ]

    return words


def on_import(folder: Path) -> list[str]:
    module = plant("modules", "raises_at_import", folder).stem
    return [
        "--nproc",
        "2",
        "--only",
        "host,environment,import_memory",
        "--imports",
        f"json,{module}",
        "--python",
        sys.executable,
    ]


def without_torch(folder: Path) -> list[str]:
    venv.create(folder / "bare", with_pip=False, symlinks=True)
    return [
        "--nproc",
        "2",
        "--only",
        "host,gloo_control,train_step",
        "--python",
        str(folder / "bare" / "bin" / "python"),
    ]


def on_model(folder: Path) -> list[str]:
    """The model of tests/e2e/scripts whose second layer drops the mask, and whose running scale
    is not saved.
    """
    shutil.copyfile(
        Path(__file__).resolve().parents[1] / "e2e" / "scripts" / "small_tagger.py",
        folder / "net.py",
    )
    return [
        "--nproc",
        "2",
        "--only",
        "model_stress",
        "--python",
        sys.executable,
        "--model",
        "net.py:make",
        "--sample",
        "net.py:batch",
        "--device",
        "cpu",
    ]


def kill_rank_2(folder: Path, _tool: subprocess.Popen[bytes]) -> None:
    threading.Thread(
        target=send_when_training, args=(folder / "beats", 2, 10, signal.SIGKILL), daemon=True
    ).start()


def press_ctrl_c(folder: Path, tool: subprocess.Popen[bytes]) -> None:
    """Once the two ranks train."""
    for _ in range(int(PATIENCE_S / 0.1)):
        if (folder / "beats" / "rank1.json").exists() or tool.poll() is not None:
            break
        time.sleep(0.1)
    time.sleep(1.0)
    tool.send_signal(signal.SIGINT)


RECIPES: dict[str, Recipe | LiveRecipe] = {
    "healthy-ladder": Recipe(
        "healthy", "", (), lambda _: ["--nproc", "2", "--python", sys.executable]
    ),
    "rank-stuck": Recipe(
        "hung", "rank-stuck", (1,), on_script(3, "own", "shard_never_ready", "--pick", "1")
    ),
    "conditional-collective": Recipe(
        "hung",
        "rank-conditional-collective",
        (2,),
        on_script(3, "own", "metrics_broadcast", "--pick", "2"),
    ),
    "shape-mismatch": Recipe(
        "crashed",
        "collective-shape-mismatch",
        (1,),
        on_script(3, "torchrun", "uneven_loss_vector", "--pick", "1"),
    ),
    "user-exception": Recipe(
        "crashed", "user-exception", (1,), on_script(3, "own", "missing_label", "--pick", "1")
    ),
    "native-crash": Recipe(
        "crashed", "native-crash", (2,), on_script(3, "own", "null_record", "--pick", "2")
    ),
    "rank-killed": Recipe(
        "crashed",
        "rank-killed",
        (2,),
        on_script(3, "torchrun", "heartbeat_loop", "--heartbeat", "beats"),
        kill_rank_2,
    ),
    "import-failure": Recipe("at-risk", "import-failure", (), on_import),
    "climb-lock-in-worker": Recipe("hung", "fork-inherited-lock", (0,), on_climb("ddp_vocabulary")),
    "model-two-faults": Recipe("at-risk", "model-mask-fault", (), on_model),
    "no-steps-run": Recipe(
        "crashed", "no-steps-run", (), on_script(2, "own", "everything_filtered_out")
    ),
    "interrupted": Recipe(
        "undetermined",
        "",
        (),
        on_script(2, "own", "heartbeat_loop", "--heartbeat", "beats"),
        press_ctrl_c,
    ),
    "without-torch": Recipe("undetermined", "", (), without_torch),
    **LIVE,
    **LOGGED,
}


def run(recipe: Recipe | LiveRecipe, folder: Path) -> Path:
    """Run the tool in `folder` and return the case that it wrote there."""
    if isinstance(recipe, LiveRecipe):
        return recipe.make(folder)
    argv = [sys.executable, "-m", "trainprobe", "diagnose", "--case", "case", *recipe.words(folder)]
    root = Path(__file__).resolve().parents[2]
    env = {
        **os.environ,
        **TORCHRUN_ON_PATH,
        "NO_COLOR": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": f"{folder}{os.pathsep}{root}",
    }
    with (folder / "tool.out").open("wb") as out:
        tool = subprocess.Popen(
            argv,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            recipe.meanwhile(folder, tool)
            tool.wait(PATIENCE_S)
        finally:
            tool.kill()
            tool.wait()
    return folder / "case"
