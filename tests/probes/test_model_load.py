"""The rung that loads the model: alone, together, by cheaper ways; and what user objects may do
to it.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import MakeCgroup
from tests.probes.conftest import RunProbe

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="torch is not installed here"
    ),
]
MIB = 2**20
FACTORIES = """
import os, sys, time
import torch

def net(width=1024, layers=4):
    return torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(layers)])

def eager():  # the weights twice in memory: those of the file, and those that were made at random
    model = net(2048, 6)
    model.load_state_dict(torch.load(os.environ["WEIGHTS"]))
    return model

def raises():
    return {}["layers"]

def nothing():
    print("x" * 100_000)

def number():
    return 7

def leaves():
    sys.exit(3)

def kills_itself():
    os.kill(os.getpid(), 9)

def hangs():
    time.sleep(600)

def forks():
    os.fork()
    return net()

def needs(path):
    return net()
"""
SAVES = """
import sys, torch
sys.path.insert(0, sys.argv[1])
import models
torch.save(models.net(2048, 6).state_dict(), sys.argv[2])
"""


def factories(tmp_path: Path) -> str:
    (tmp_path / "models.py").write_text(FACTORIES)
    return str(tmp_path / "models.py")


def weights(tmp_path: Path) -> Path:
    """96 MiB of weights in torch's own format."""
    factories(tmp_path)
    path = tmp_path / "weights.pt"
    subprocess.run([sys.executable, "-c", SAVES, str(tmp_path), str(path)], check=True, timeout=120)
    return path


def test_ranks_load_alone_together_and_by_the_cheaper_way(
    run_probe: RunProbe, tmp_path: Path
) -> None:
    done = run_probe(
        "model_load", "--model", str(weights(tmp_path)), "--nproc", "2", "--planned-ranks", "8"
    )
    assert done.answer == "yes", done.output
    alone, *together = done.of("measure", name="load.host_peak", how="given")
    assert (alone["ranks"], [(one["ranks"], one["rank"]) for one in together]) == (
        1,
        [(2, 0), (2, 1)],
    )
    own = {one["how"]: one["value"] for one in done.of("measure", name="load.private", ranks=1)}
    assert own["given"] - own["mmap"] > 60 * MIB  # pages of a mapped file are nobody's own
    (need,) = done.of("measure", name="load.need")
    assert need["ranks"] == 8
    assert need["value"] > 8 * own["given"]
    limit = done.of("measure", name="limit.memory_bytes")[0]["value"]
    assert done.of("measure", name="limit.memory_free_bytes")[0]["value"] <= limit
    (best,) = done.of("note", check="model.cheaper")
    assert best["value"]["how"] == "mmap"


@pytest.mark.parametrize(
    ("factory", "kind", "says"),
    [
        pytest.param("raises", "raised", " in raises: KeyError 'layers'", marks=pytest.mark.soak),
        pytest.param("nothing", "nonsense", "it returned None", marks=pytest.mark.soak),
        pytest.param("number", "nonsense", "it returned the int 7", marks=pytest.mark.soak),
        pytest.param("leaves", "raised", "SystemExit 3", marks=pytest.mark.soak),
        pytest.param("kills_itself", "died", "died (SIGKILL)", marks=pytest.mark.soak),
        pytest.param("hangs", "stood", " in hangs: it did not end in time", marks=pytest.mark.soak),
    ],
)
def test_a_factory_that_is_at_fault_gets_a_sentence(
    run_probe: RunProbe, tmp_path: Path, factory: str, kind: str, says: str
) -> None:
    done = run_probe(
        "model_load",
        "--model",
        f"{factories(tmp_path)}:{factory}",
        "--nproc",
        "2",
        "--timeout-s",
        "60" if factory == "hangs" else "80",
    )
    assert done.answer == "no", done.output
    (failed,) = done.of("fail")
    assert (failed["given"], failed["kind"]) == ("model", kind)
    assert says in failed["says"]


@pytest.mark.soak
@pytest.mark.parametrize(
    ("factory", "says"), [("needs", "it needs path"), ("nosuch", "has no nosuch")]
)
def test_what_was_mistyped_is_no_fault_of_the_model(
    run_probe: RunProbe, tmp_path: Path, factory: str, says: str
) -> None:
    done = run_probe("model_load", "--model", f"{factories(tmp_path)}:{factory}", "--nproc", "2")
    assert (done.answer, bool(done.of("fail"))) == ("cannot", False)
    assert says in done.output


@pytest.mark.soak
def test_a_factory_that_forks_is_heard_once(run_probe: RunProbe, tmp_path: Path) -> None:
    done = run_probe("model_load", "--model", f"{factories(tmp_path)}:forks", "--nproc", "1")
    assert done.answer == "yes", done.output
    assert len(done.of("measure", name="load.took_s", how="given")) == 1


@pytest.mark.soak
def test_there_is_no_such_file(run_probe: RunProbe) -> None:
    done = run_probe("model_load", "--model", "weights.pt", "--nproc", "2")
    assert done.answer == "cannot"
    assert "There is no file weights.pt." in done.output


@pytest.mark.soak
@pytest.mark.root
def test_two_ranks_that_do_not_fit_where_one_does(
    run_probe: RunProbe, tmp_path: Path, memory_cgroup: MakeCgroup
) -> None:
    path = weights(tmp_path)
    env = {"WEIGHTS": str(path)}
    folder = memory_cgroup(600 * MIB)
    join = f'echo $$ > "{folder}/cgroup.procs"'
    done = run_probe(
        "model_load", "--model", f"{factories(tmp_path)}:eager", "--nproc", "2", env=env, shell=join
    )
    assert done.answer == "no", done.output
    killed = done.of("fail", name="load")
    assert killed
    assert {(one["outcome"], one["ranks"]) for one in killed} == {("oom_killed", 2)}
    assert done.of("measure", name="load.took_s", how="given", ranks=1)
    done = run_probe(
        "model_load",
        "--model",
        f"{factories(tmp_path)}:eager",
        "--nproc",
        "1",
        "--planned-ranks",
        "4",
        env=env,
        shell=join,
    )
    assert done.answer == "no", done.output
    (ahead,) = done.of("fail", check="model.memory")
    assert ahead["value"]["need"] > ahead["value"]["limit"] == 600 * MIB
    assert "Together 4 ranks need" in done.output
    done = run_probe(
        "model_load", "--model", f"{factories(tmp_path)}:eager", "--nproc", "1", env=env, shell=join
    )
    assert done.answer == "yes", done.output


@pytest.mark.soak
def test_a_folder_of_a_model(run_probe: RunProbe, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    transformers.GPT2LMHeadModel(
        transformers.GPT2Config(n_embd=256, n_layer=4, n_head=4)
    ).save_pretrained(tmp_path / "hf")
    done = run_probe(
        "model_load", "--model", str(tmp_path / "hf"), "--nproc", "2", "--timeout-s", "80"
    )
    assert done.answer == "yes", done.output
    assert {one["how"] for one in done.of("measure", name="load.took_s")} >= {"given", "assign"}


@pytest.mark.soak
def test_code_in_a_file_of_weights_is_never_run(run_probe: RunProbe, tmp_path: Path) -> None:
    marker = tmp_path / "was here"
    program = (
        f"import torch, os\nclass Evil:\n    def __reduce__(self): return (open, ({str(marker)!r},"
        f" 'w'))\ntorch.save({{'a': Evil()}}, {str(tmp_path / 'pytorch_model.bin')!r})"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
    (tmp_path / "hf").mkdir()
    (tmp_path / "pytorch_model.bin").rename(tmp_path / "hf" / "pytorch_model.bin")
    for config in (None, {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2"}):
        if config is not None:
            (tmp_path / "hf" / "config.json").write_text(json.dumps(config))
        done = run_probe("model_load", "--model", str(tmp_path / "hf"), "--nproc", "1")
        assert done.answer == "no", done.output
        assert not marker.exists()
