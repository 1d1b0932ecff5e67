"""The witness inside real programs: what it tells, and that the program does not notice."""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.probes.conftest import PROBES, environment

WITNESS = PROBES / "_witness"
needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed here"
)


@dataclass(frozen=True)
class Witnessed:
    exit_code: int
    stdout: str
    stderr: str
    files: Mapping[str, list[Mapping[str, Any]]]

    @property
    def events(self) -> list[Mapping[str, Any]]:
        return [event for name in sorted(self.files) for event in self.files[name]]

    def of(self, name: str) -> list[Mapping[str, Any]]:
        return [event for event in self.events if event["name"] == name]


Run = Callable[..., Witnessed]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a program's text as rank 1 of 2 under the witness; `argv` comes before the script and
    replaces the plain interpreter.
    """

    def start(
        source: str,
        *argv: str,
        env: Mapping[str, str] | None = None,
        witness: bool = True,
        path: str = "",
    ) -> Witnessed:
        folder, script = tmp_path / "witness", tmp_path / "program.py"
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        script.write_text(source)
        paths = [str(WITNESS)] * witness + [path] * bool(path)
        given = {
            "RANK": "1",
            "WORLD_SIZE": "2",
            "LOCAL_RANK": "1",
            "TRAINPROBE_WITNESS_DIR": str(folder),
            **(env or {}),
        }
        all_env = environment(
            **({"PYTHONPATH": ":".join(paths)} if paths else {}),
            **{key: value for key, value in given.items() if value},
        )
        done = subprocess.run(
            [sys.executable, *argv, str(script)],
            env=all_env,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        files = {
            path.name: [json.loads(line) for line in path.read_text().splitlines()]
            for path in folder.glob("*.jsonl")
        }
        return Witnessed(done.returncode, done.stdout, done.stderr, files)

    return start


ENDINGS = {
    "returns": "print('out')",
    "raises": "def f():\n    raise KeyError('lost')\nf()",
    "exits": "import sys\nprint('out')\nsys.exit(3)",
    "exits with text": "import sys\nsys.exit('goodbye')",
    "leaves at once": "import os\nos._exit(5)",
    "raises SystemExit": "raise SystemExit(4)",
    "group": "raise KeyError('a') from ValueError('b')",
    "thread": (
        "import threading\nt = threading.Thread(target=lambda: 1 / 0,"
        " name='loader')\nt.start()\nt.join()"
    ),
    "hook replaced": "import sys\nsys.excepthook = lambda *a: print('mine')\n1 / 0",
    "syntax": "x = (",
    "stdout closed": "import sys\nsys.stdout.close()\nraise ValueError('x')",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_program_does_not_notice(ending: str, run: Run) -> None:
    bare, seen = run(ENDINGS[ending], witness=False), run(ENDINGS[ending])
    assert (seen.exit_code, seen.stdout, seen.stderr) == (bare.exit_code, bare.stdout, bare.stderr)
    assert bare.files == {}
    assert [event["role"] for event in seen.of("start")] == ["rank"]


@pytest.mark.parametrize(
    ("ending", "kind", "thread"),
    [
        ("raises", "KeyError", "MainThread"),
        ("group", "KeyError", "MainThread"),
        ("thread", "ZeroDivisionError", "loader"),
        ("hook replaced", "ZeroDivisionError", "MainThread"),
        ("syntax", "SyntaxError", "MainThread"),
    ],
)
def test_an_uncaught_exception_is_told_once(ending: str, kind: str, thread: str, run: Run) -> None:
    seen = run(ENDINGS[ending])
    (error,) = seen.of("exception")
    assert (error["event"], error["type"], error["thread"], error["rank"]) == (
        "fail",
        kind,
        thread,
        1,
    )
    (ended,) = seen.of("exit")
    assert ended["code"] == (None if thread == "loader" else 1)


def test_frames_are_outermost_first_with_their_text(run: Run) -> None:
    (error,) = run(ENDINGS["raises"]).of("exception")
    assert [(frame["line"], frame["function"], frame["text"]) for frame in error["frames"]] == [
        (3, "<module>", "f()"),
        (2, "f", "raise KeyError('lost')"),
    ]
    assert error["message"] == "'lost'"


@pytest.mark.parametrize(
    ("ending", "how", "code", "line"),
    [
        ("exits", "sys.exit", 3, 3),
        ("exits with text", "sys.exit", 1, 2),
        ("leaves at once", "os._exit", 5, 2),
    ],
)
def test_who_ended_the_program(ending: str, how: str, code: int, line: int, run: Run) -> None:
    seen = run(ENDINGS[ending])
    (leave,) = seen.of("leave")
    assert (leave["how"], leave["code"], leave["where"]["line"]) == (how, code, line)
    assert [one["code"] for one in seen.of("exit")] == ([] if how == "os._exit" else [code])


def test_an_exception_that_was_caught_and_turned_into_an_exit(run: Run) -> None:
    (leave,) = run("import sys\ntry:\n    {}['key']\nexcept KeyError:\n    sys.exit(1)").of("leave")
    assert (leave["handling"]["type"], leave["handling"]["frames"][0]["line"]) == ("KeyError", 3)


@pytest.mark.parametrize(
    ("body", "module"),
    [("raise RuntimeError('old driver')", "lib_of_mine"), ("import no_such_thing", "lib_of_mine")],
)
def test_an_exception_during_an_import(body: str, module: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / "lib_of_mine.py").write_text(body)
    (error,) = run("import lib_of_mine").of("exception")
    assert error["during_import"] == module


def test_a_module_that_is_missing(run: Run) -> None:
    (error,) = run("import no_such_thing").of("exception")
    assert (error["type"], error["during_import"]) == ("ModuleNotFoundError", "no_such_thing")


def test_an_interrupt_is_told(tmp_path: Path) -> None:
    folder, script = tmp_path / "witness", tmp_path / "program.py"
    folder.mkdir()
    script.write_text("import time\nprint('up', flush=True)\ntime.sleep(60)\n")
    env = environment(RANK="0", TRAINPROBE_WITNESS_DIR=str(folder), PYTHONPATH=str(WITNESS))
    child = subprocess.Popen(
        [sys.executable, str(script)],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "up\n"
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=20) == -signal.SIGINT
    child.stdout.close()
    events = [
        json.loads(line) for line in (folder / f"rank0.{child.pid}.jsonl").read_text().splitlines()
    ]
    assert [event["type"] for event in events if event["name"] == "exception"] == [
        "KeyboardInterrupt"
    ]


def test_children_of_a_rank_stay_silent(run: Run) -> None:
    source = """
import multiprocessing, os, subprocess, sys
def work(_):
    return os.getpid()
if __name__ == "__main__":
    for way in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(way).Pool(1) as pool:
            pool.map(work, [1])
    subprocess.run([sys.executable, "-c", "raise ValueError"], stderr=subprocess.DEVNULL)
    if os.fork() == 0:
        sys.exit(7)
    os.wait()
"""
    seen = run(source)
    assert (seen.exit_code, len(seen.files)) == (0, 1), seen.stderr
    assert [event["name"] for event in seen.events] == ["start", "exit"]


def test_a_process_without_a_rank_and_ranks_below_it(run: Run) -> None:
    source = """
import os, subprocess, sys
if "RANK" not in os.environ:
    for rank in "01":
        subprocess.run([sys.executable, __file__], env={**os.environ, "RANK": rank, "TORCHELASTIC_RUN_ID": "none"})
"""
    seen = run(source, env={"RANK": "", "LOCAL_RANK": "", "WORLD_SIZE": ""})
    assert sorted(name.split(".")[0] for name in seen.files) == ["norank", "rank0", "rank1"]
    assert [event["role"] for event in seen.of("start")] == ["alone", "rank", "rank"]


def test_a_launcher_that_was_given_a_rank_by_mistake(run: Run) -> None:
    source = """
import os, subprocess, sys
if "TORCHELASTIC_RUN_ID" not in os.environ:
    for rank in "01":
        subprocess.run([sys.executable, __file__], env={**os.environ, "RANK": rank, "TORCHELASTIC_RUN_ID": "none"})
"""
    assert sorted(name.split(".")[0] for name in run(source).files) == ["rank0", "rank1", "rank1"]


def test_the_users_own_sitecustomize_still_runs(run: Run, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("print('hello from', __file__)\nVALUE = 7\n")
    seen = run(
        "import sitecustomize, sys\nprint(sitecustomize.VALUE, [p for p in sys.path if"
        " p.endswith('_witness')])",
        path=str(own),
    )
    assert seen.stdout.splitlines() == [f"hello from {own}/sitecustomize.py", "7 []"]
    assert seen.of("start")


def test_an_error_in_the_users_sitecustomize_reads_as_it_does_without_us(
    run: Run, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("raise ValueError('theirs')\n")
    bare, seen = run("print('on')", witness=False, path=str(own)), run("print('on')", path=str(own))
    assert (seen.stdout, seen.exit_code, seen.stderr) == (bare.stdout, bare.exit_code, bare.stderr)


@pytest.mark.parametrize("folder", ["/nonexistent", "/dev/null", "/proc"])
def test_a_folder_that_cannot_be_written(folder: str, run: Run) -> None:
    seen = run("print('on')\nimport sys\nsys.exit(2)", env={"TRAINPROBE_WITNESS_DIR": folder})
    assert (seen.stdout, seen.stderr, seen.exit_code) == ("on\n", "", 2)


def test_the_users_faulthandler_is_left_alone(run: Run) -> None:
    assert run("import faulthandler\nprint(faulthandler.is_enabled())").stdout == "True\n"
    source = (
        "import ctypes, faulthandler\nfaulthandler.enable(open('mine.txt',"
        " 'w'))\nctypes.string_at(0)"
    )
    seen = run(source)
    assert (seen.exit_code, seen.stderr) == (-signal.SIGSEGV, "")


def test_start_is_quick(run: Run) -> None:
    """Start-up time is modules; wall time would measure who else uses the machine. It was 4 ms
    on an idle one.
    """
    source = "import sys\nprint(*sorted(sys.modules))"
    bare, seen = run(source, witness=False), run(source)
    assert set(seen.stdout.split()) - set(bare.stdout.split()) <= {
        "__future__",
        "_json",
        "atexit",
        "faulthandler",
        "importlib",
        "importlib._bootstrap",
        "importlib._bootstrap_external",
        "importlib.machinery",
        "sitecustomize",
        "warnings",
    }


# --- with torch
# --------------------------------------------------------------------------------------------------

TRAIN = """
import sys, torch
from torch.utils.data import DataLoader
if __name__ == "__main__":
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.AdamW(model.parameters())
    for batch in DataLoader(torch.ones({rows}, 2), batch_size=4, drop_last=True, num_workers={workers}, multiprocessing_context={context!r}):
        model(batch).sum().backward()
        optimizer.step()
"""


@pytest.mark.torch
@needs_torch
@pytest.mark.parametrize(("workers", "context"), [(0, None), (2, "fork"), (1, "spawn")])
def test_steps_and_batches_are_counted_and_workers_are_silent(
    workers: int, context: str | None, run: Run
) -> None:
    seen = run(TRAIN.format(rows=20, workers=workers, context=context))
    assert (seen.exit_code, len(seen.files)) == (0, 1), seen.stderr
    (ended,) = seen.of("exit")
    assert (ended["optimizer_steps"], ended["batches"], ended["torch_imported"]) == (5, 5, True)
    assert [event["optimizer_steps"] for event in seen.of("step")] == [1, 2, 3]
    assert len(seen.of("loader.first_batch")) == 1
    assert seen.of("loader.empty") == []


@pytest.mark.torch
@needs_torch
def test_a_loader_without_a_batch(run: Run) -> None:
    seen = run(TRAIN.format(rows=3, workers=0, context=None))
    (empty,) = seen.of("loader.empty")
    assert empty["dataset_len"] == 3
    (ended,) = seen.of("exit")
    assert (seen.exit_code, ended["optimizer_steps"], ended["batches"]) == (0, 0, 0)


@pytest.mark.torch
@needs_torch
def test_an_iterable_dataset_without_a_batch_and_no_warning_of_torch(run: Run) -> None:
    source = """
import torch
class Stream(torch.utils.data.IterableDataset):
    def __init__(self, rows): self.rows = rows
    def __len__(self): return 1
    def __iter__(self): return iter(range(self.rows))
list(torch.utils.data.DataLoader(Stream({rows})))
"""
    assert [event["dataset_len"] for event in run(source.format(rows=0)).of("loader.empty")] == [
        None
    ]
    more = run(
        source.format(rows=3)
    )  # more rows than it says: torch would warn had anybody asked for its length
    assert (more.of("loader.empty"), more.stderr) == ([], "")


@pytest.mark.torch
@needs_torch
def test_compiling_pickling_and_copying_work_as_before(run: Run) -> None:
    source = """
import copy, io, pickle, torch
from torch.utils.data import DataLoader
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(1, 2)).sum().backward()
@torch.compile(backend="eager")
def step():
    optimizer.step()
for _ in range(3):
    step()
import torch._dynamo.utils
print(dict(torch._dynamo.utils.counters["stats"]), sum(torch._dynamo.utils.counters["graph_break"].values()))
pickle.dumps((optimizer, DataLoader([1, 2])))
copy.deepcopy(optimizer)
torch.save(optimizer.state_dict(), io.BytesIO())
"""
    bare, seen = run(source, witness=False), run(source)
    assert (seen.exit_code, seen.stdout) == (0, bare.stdout), seen.stderr
    (ended,) = seen.of("exit")
    assert ended["optimizer_steps"] is None  # not 0: a compiled step is not seen


@pytest.mark.torch
@needs_torch
def test_the_hook_costs_less_than_two_microseconds(run: Run) -> None:
    source = """
import timeit, torch
from torch.optim.optimizer import _global_optimizer_post_hooks as hooks
(hook,) = hooks.values()
for _ in range(3): hook(None, (), {})
print(min(timeit.repeat(lambda: hook(None, (), {}), number=2000, repeat=20)) / 2000)
"""
    assert float(run(source).stdout) < 2e-6  # measured 0.4 µs on an idle machine


@pytest.mark.torch
@needs_torch
@pytest.mark.parametrize("record", [False, True])
def test_an_exception_in_a_process_group_under_torchrun(record: bool, run: Run) -> None:
    source = f"""
import os, torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record
def main():
    dist.init_process_group("gloo")
    dist.barrier()
    if os.environ["RANK"] == "1":
        raise KeyError("lost")
    dist.destroy_process_group()
{"main = record(main)" if record else ""}
main()
"""
    argv = (
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        "--master-port",
        "0",
        "--rdzv-endpoint",
        "localhost:0",
        "--rdzv-backend",
        "c10d",
    )
    seen = run(source, *argv, env={"RANK": "", "WORLD_SIZE": "", "LOCAL_RANK": ""})
    assert seen.exit_code == 1, seen.stderr
    ranks = {name.split(".")[0]: events for name, events in seen.files.items()}
    assert set(ranks) == {"norank", "rank0", "rank1"}
    errors = [event for event in ranks["rank1"] if event["name"] == "exception"]
    assert [error["type"] for error in errors] == ["KeyError"]
    assert errors[0]["frames"][-1]["function"] == "main"
    assert [event["type"] for event in ranks["norank"] if event["name"] == "exception"] in (
        [],
        ["ChildFailedError"],
    )
    assert seen.stderr.count("KeyError: 'lost'") >= 1


WRAPS = """
import copy, pickle, torch
def wrap(model):
    return torch.nn.DataParallel(model)
one = wrap(torch.nn.Linear(2, 1))
print(one.device_ids, copy.deepcopy(one).device_ids, pickle.loads(pickle.dumps(one)).device_ids, hasattr(torch.nn.DataParallel.__new__(torch.nn.DataParallel), "device_ids"))
"""


@pytest.mark.torch
@needs_torch
def test_a_model_in_data_parallel_is_told_of_with_the_line_that_did_it(run: Run) -> None:
    bare, seen = run(WRAPS, witness=False), run(WRAPS)
    assert (seen.exit_code, seen.stdout, seen.stderr) == (bare.exit_code, bare.stdout, bare.stderr)
    made, *others = seen.of("data_parallel")
    assert (made["devices"], made["by"]["line"], made["user"]["function"]) == (
        len(json.loads(seen.stdout.split("]")[0] + "]")),
        4,
        "wrap",
    )
    assert others == [], "copies are no new wrappers"
