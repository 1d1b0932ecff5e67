"""The rung that forks: what a child does not survive is named with the step that made the fork
unsafe, and nothing else is.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.probes.conftest import RunProbe

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed here"
)
HOLDS_ITS_LOCK = """
import threading, time
LOCK = threading.Lock()
def refresh():
    while True:
        with LOCK:
            time.sleep(0.05)
        time.sleep(0.01)
threading.Thread(target=refresh, name="refresher", daemon=True).start()
"""
# The thread holds it for ever: whoever wants it waits in the parent too, and the fork is not to
# blame.
NEVER_LETS_GO = HOLDS_ITS_LOCK.replace("time.sleep(0.05)", "time.sleep(600)")
TOUCHES_CUDA = """
import types, sys
fake = types.ModuleType("torch")
fake.cuda = types.SimpleNamespace(is_initialized=lambda: True)
fake.get_num_threads = lambda: 1
sys.modules["torch"] = fake
"""
DATA = """
import os, torch
class Rows(torch.utils.data.Dataset):
    def __init__(self, threads):
        self.threads = threads
        torch.set_num_threads(2)
        self.basis = torch.mm(torch.ones(512, 512), torch.ones(512, 512))
    def __len__(self):
        return 8
    def __getitem__(self, row):
        torch.set_num_threads(self.threads)
        return torch.mm(self.basis, self.basis).sum() + row
def wide():
    return Rows(2)
def narrow():
    return Rows(1)
class Forked(Rows):
    def __getitem__(self, row):
        if os.getpid() != MAIN:
            raise RuntimeError("Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method")
        return row
MAIN = os.getpid()
def on_gpu():
    torch.cuda.is_initialized = lambda: True
    return Forked(1)
def broken():
    class Broken(Rows):
        def __getitem__(self, row):
            raise KeyError(row)
    return Broken(1)
"""


def module(tmp_path: Path, name: str, text: str) -> dict[str, str]:
    (tmp_path / f"{name}.py").write_text(text)
    return {"PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "2"}


def test_a_lock_that_a_thread_of_an_import_holds_at_the_fork(
    run_probe: RunProbe, tmp_path: Path
) -> None:
    done = run_probe(
        "fork_safety", "--imports", "json,names", env=module(tmp_path, "names", HOLDS_ITS_LOCK)
    )
    assert done.answer == "no", done.output
    (failed,) = done.of("fail", name="fork")
    assert (failed["kind"], failed["outcome"], failed["lock"]) == ("lock", "hangs", "names.LOCK")
    (culprit,) = failed["culprits"]
    assert culprit.startswith("`import names` started the thread refresher at ")
    assert "names.py:9 in <module>" in culprit
    before = {one["module"]: one["value"] for one in done.of("measure", name="fork.threads_before")}
    assert before == {"import json": 0, "import names": 1}


@pytest.mark.soak
def test_a_lock_that_is_never_let_go_is_not_laid_to_the_fork(
    run_probe: RunProbe, tmp_path: Path
) -> None:
    done = run_probe(
        "fork_safety", "--imports", "names", env=module(tmp_path, "names", NEVER_LETS_GO)
    )
    assert done.answer == "yes", done.output
    assert not done.of("fail")


def test_the_import_that_touches_cuda_is_named(run_probe: RunProbe, tmp_path: Path) -> None:
    done = run_probe(
        "fork_safety", "--imports", "json,early", env=module(tmp_path, "early", TOUCHES_CUDA)
    )
    warned, *_ = done.of("note", check="fork.cuda")
    assert (warned["status"], warned["value"]) == (
        "warn",
        {"step": "import early", "by": "torch.cuda"},
    )


@pytest.mark.parametrize("text", ["raise OSError('no')", "import os; os._exit(3)"])
def test_an_import_that_fails_is_not_laid_to_the_fork(
    run_probe: RunProbe, tmp_path: Path, text: str
) -> None:
    done = run_probe("fork_safety", "--imports", "bad", env=module(tmp_path, "bad", text))
    assert done.answer == ("yes" if "raise" in text else "cannot"), done.output
    assert not done.of("fail")


@pytest.mark.soak
def test_an_import_that_hangs_ends_with_the_time(run_probe: RunProbe, tmp_path: Path) -> None:
    done = run_probe(
        "fork_safety",
        "--imports",
        "bad",
        "--timeout-s",
        "8",
        env=module(tmp_path, "bad", "import time; time.sleep(600)"),
    )
    assert done.answer == "cannot"
    assert "`import bad`" in done.output


@pytest.mark.soak
def test_a_module_of_the_users_that_waits_for_others_is_given_up(
    run_probe: RunProbe, tmp_path: Path
) -> None:
    env = {
        **module(tmp_path, "mine", "import time; time.sleep(600)"),
        "TRAINPROBE_LOCAL_IMPORTS": "mine",
    }
    done = run_probe("fork_safety", "--imports", "json", env=env)
    assert done.answer == "yes", done.output
    assert "it took longer than 15 s" in done.output


@needs_torch
@pytest.mark.torch
def test_threads_of_torch_that_did_not_come_along(run_probe: RunProbe, tmp_path: Path) -> None:
    """GNU OpenMP: its team stays in the parent, and a child that wants it waits for ever."""
    env = module(tmp_path, "d", DATA)
    done = run_probe("fork_safety", "--imports", "torch", "--dataset", "d:wide", env=env)
    if not done.of("measure", name="fork.child", op="torch.mm", outcome="hangs"):
        pytest.skip("this torch has an OpenMP that survives a fork")
    assert done.answer == "no", done.output
    (failed,) = done.of("fail", name="fork")
    assert (failed["kind"], failed["op"], failed["outcome"]) == (
        "pool",
        "a sample of the data",
        "hangs",
    )
    assert "d.py:12 in __getitem__" in failed["where"]
    assert failed["culprits"][0].startswith("`data` started ")


@needs_torch
@pytest.mark.torch
@pytest.mark.soak
@pytest.mark.parametrize("factory", ["narrow", "broken"])
def test_workers_with_one_thread_get_through(
    run_probe: RunProbe, tmp_path: Path, factory: str
) -> None:
    """What raises in the parent too is the data's own fault, and another rung's answer."""
    done = run_probe(
        "fork_safety",
        "--imports",
        "torch",
        "--dataset",
        f"d:{factory}",
        env=module(tmp_path, "d", DATA),
    )
    assert done.answer == "yes", done.output
    assert not done.of("fail")


@needs_torch
@pytest.mark.torch
@pytest.mark.soak
def test_a_script_that_forks_itself_has_no_such_worker(run_probe: RunProbe, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("from multiprocessing import Pool\n")
    done = run_probe(
        "fork_safety",
        "--imports",
        "torch",
        "--dataset",
        "d:narrow",
        "--script",
        str(script),
        env=module(tmp_path, "d", DATA),
    )
    assert done.answer == "no", done.output
    assert done.of("fail", name="fork", op="torch.mm", kind="pool")
    script.write_text(
        "from multiprocessing import Pool, set_start_method\nset_start_method('spawn')\n"
    )
    done = run_probe(
        "fork_safety",
        "--imports",
        "torch",
        "--dataset",
        "d:narrow",
        "--script",
        str(script),
        env=module(tmp_path, "d", DATA),
    )
    assert done.answer == "yes", done.output


@needs_torch
@pytest.mark.torch
@pytest.mark.soak
def test_one_thread_for_all_heals_it(run_probe: RunProbe, tmp_path: Path) -> None:
    text = DATA.replace("torch.set_num_threads(2)", "pass")
    done = run_probe(
        "fork_safety",
        "--imports",
        "torch",
        "--dataset",
        "d:narrow",
        env={**module(tmp_path, "d", text), "OMP_NUM_THREADS": "1"},
    )
    assert done.answer == "yes", done.output
    assert not done.of("note", check="fork.thread_pool")


@needs_torch
@pytest.mark.torch
@pytest.mark.soak
def test_data_that_uses_cuda_in_a_worker(run_probe: RunProbe, tmp_path: Path) -> None:
    """Stands in for a machine with a GPU: torch's own words, raised in the child alone."""
    done = run_probe(
        "fork_safety",
        "--imports",
        "torch",
        "--dataset",
        "d:on_gpu",
        env=module(tmp_path, "d", DATA),
    )
    assert done.answer == "no", done.output
    (failed,) = done.of("fail", name="fork")
    assert (failed["kind"], failed["culprits"]) == ("cuda", ["`data`"])


@needs_torch
@pytest.mark.soak
def test_what_the_installed_datasets_does_at_num_proc_1(run_probe: RunProbe) -> None:
    datasets = pytest.importorskip("datasets")
    done = run_probe("fork_safety", "--imports", "datasets")
    (known,) = done.of("note", check="fork.datasets_map")
    numbers = tuple(int(part) for part in datasets.__version__.split(".")[:2])
    assert known["value"] == {
        "version": datasets.__version__,
        "forks_at_one": numbers >= (4, 1),
        "forks_at_none": False,
    }
