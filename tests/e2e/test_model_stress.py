"""The model's stress test through the command line: two faults are two causes with names, and a
model that does not run is told as that.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.conftest import RunTool

SOURCE = Path(__file__).parent / "scripts" / "small_tagger.py"
SUITES = {
    "TRAINPROBE_SUITES": "masks,serialization",
    "OMP_NUM_THREADS": "1",
}  # the others have tests of their own


def words(folder: Path, factory: str) -> list[str]:
    shutil.copyfile(SOURCE, folder / "net.py")
    rung = ["--nproc", "1", "--only", "model_stress", "--python", sys.executable]
    return [
        "diagnose",
        *rung,
        "--model",
        f"net.py:{factory}",
        "--sample",
        "net.py:batch",
        "--device",
        "cpu",
        "--seed",
        "1",
    ]


@pytest.mark.torch
def test_two_faults_are_two_causes_each_with_its_place(run_tool: RunTool, job_folder: Path) -> None:
    done = run_tool(*words(job_folder, "make"), env=SUITES)
    causes = [(cause["id"], cause["named"]) for cause in done.report["causes"]]
    assert (done.report["verdict"], done.exit_code) == ("at-risk", 1), f"\n{done}"
    assert causes[:2] == [("model-mask-fault", True), ("state-dict-mismatch", True)], f"\n{done}"
    told = [suspect["findings"][0] for suspect in done.report["suspects"]]
    assert told[0]["where"].startswith("layers.1")
    assert told[1]["where"] == "scale"
    assert "self.register_buffer('scale', …) without persistent=False" in done.stdout
    assert "--only model_stress --model net.py:make --sample net.py:batch --seed 1" in " ".join(
        done.stdout.replace("\\\n", " ").split()
    )
    suites = next(row["suites"] for row in done.report["ladder"] if row["probe"] == "model_stress")
    assert {
        suite["name"]: suite["outcome"] for suite in suites if suite["name"] != "evaluation"
    } == {"masks": "failed", "serialization": "failed"}
    assert "model_stress 0/2 suites passed; masks, serialization failed" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 100


@pytest.mark.torch
def test_a_model_that_is_not_built_is_an_exception_of_its_own(
    run_tool: RunTool, job_folder: Path
) -> None:
    done = run_tool(*words(job_folder, "broken"), env=SUITES)
    first = done.report["causes"][0]
    assert (done.report["verdict"], done.exit_code, first["id"], first["named"]) == (
        "at-risk",
        1,
        "user-exception",
        True,
    ), f"\n{done}"
    assert "The model raised ValueError: there are no weights here at net.py:" in " ".join(
        done.stdout.split()
    )
    assert "torchelastic" not in done.stdout
    assert "@record" not in done.stdout
