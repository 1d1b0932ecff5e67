"""What ended a job, among what was printed before and after its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainprobe.model.diagnosis import Report
from trainprobe.pipelines import explain

OFFLINE = "Using the latest cached version of the dataset since rows couldn't be found on the Hugging Face Hub (offline mode is enabled)."
CANCELLED = "slurmstepd: error: *** STEP 77.0 ON node3 CANCELLED AT 2031-02-03T04:05:06 ***\n"
RAISED = """\
[rank0]: Traceback (most recent call last):
[rank0]:   File "/job/train.py", line 88, in <module>
[rank0]:     main()
[rank0]:   File "/job/train.py", line 40, in main
[rank0]:     lowest = min(times)
[rank0]: ValueError: min() arg is an empty sequence
"""
IGNORED = """\
Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f2a>
Traceback (most recent call last):
  File "/env/lib/python3.11/site-packages/torch/utils/data/dataloader.py", line 1479, in __del__
    self._shutdown_workers()
RuntimeError: DataLoader worker (pid 4711) is killed by signal: Aborted.
Traceback (most recent call last):
  File "/job/train.py", line 88, in <module>
    rows = table["name"]
KeyError: 'name'
"""
UNSTARTED = """\
slurmstepd: error: execve(): hostname: No such file or directory
srun: error: node3: task 0: Exited with exit code 2
Best setting: 0.1
/var/spool/slurmd/job77/slurm_script: line 84: 4711 Aborted                 (core dumped) python tune.py
"""
CHILD = """\
Traceback (most recent call last):
  File "<string>", line 1, in <module>
  File "/env/lib/python3.11/multiprocessing/spawn.py", line 116, in spawn_main
    exitcode = _main(fd, parent_sentinel)
  File "/env/lib/python3.11/multiprocessing/spawn.py", line 126, in _main
    self = reduction.pickle.load(from_parent)
_pickle.UnpicklingError: pickle data was truncated
Process SpawnProcess-1:
torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 3/4 clients joined.
"""
KILLED = """\
srun: error: node3: task 1: Aborted (core dumped)
srun: Terminating StepId=77.0
srun: Force Terminated StepId=77.0
srun: error: node3: task 0: Killed
"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        pytest.param(OFFLINE + "\nstart\n" + CANCELLED, "preempted-or-hangup", id="it-coped"),
        pytest.param(OFFLINE + "\nstart\n" + RAISED, "user-exception", id="it-coped-and-raised"),
        pytest.param(RAISED + "start\n" * 30 + "Terminated\n", "user-exception", id="stopped"),
        pytest.param(RAISED + KILLED, "user-exception", id="killed-by-srun"),
        pytest.param(IGNORED, "user-exception", id="python-ignored-it"),
        pytest.param(UNSTARTED, "native-crash", id="another-program"),
        pytest.param(CHILD, "rendezvous-incomplete", id="a-child-whose-parent-left"),
    ],
)
def test_the_cause_is_what_ended_it(text: str, cause: str, tmp_path: Path) -> None:
    assert _explained(tmp_path, text).causes[0].id == cause


def test_a_message_ends_where_a_logger_speaks(tmp_path: Path) -> None:
    said = "[2031-02-03 04:05:06,007] torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: 1) local_rank: 0 (pid: 7) of binary: /usr/bin/python3\n"
    report = _explained(tmp_path, RAISED.replace("[rank0]: ", "") + said)

    assert "exitcode" not in report.causes[0].summary
    assert report.causes[0].id == "user-exception"


def _explained(folder: Path, text: str) -> Report:
    path = folder / "a.log"
    path.write_text(text, encoding="utf-8")
    return explain([str(path)])
