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

FETCHED = """\
Traceback (most recent call last):
  File "/job/train.py", line 12, in <module>
    encoding = tiktoken.get_encoding("o200k")
  File "/env/lib/python3.11/site-packages/urllib3/connectionpool.py", line 790, in urlopen
    response = self._make_request(
urllib3.exceptions.ConnectTimeoutError: Connection to blobs.example.net timed out. (connect timeout=None)
"""
MADE = """\
helpers.cpp:10:10: fatal error: pybind11/pybind11.h: No such file or directory
make: *** [Makefile:9: helpers.so] Error 1
torch.distributed.DistNetworkError: Connection reset by peer
"""
BREAKPOINT = """\
(TaskRunner pid=7) Ray debugger is listening on 10.0.0.3:35523
(TaskRunner pid=7) Waiting for debugger to attach (see https://docs.ray.io/)...
"""
STEPS = "".join(f"step {step} loss 0.{step}\n" for step in range(1, 30))
AGENT = "W0403 16:15:06.1 53 torch/distributed/elastic/rendezvous/dynamic_rendezvous.py:1331] The node 'n_53_0' has failed to shutdown the rendezvous '13' due to an error of type RendezvousConnectionError.\n"
GIVEN_BACK = "".join(
    f"node3:{84 + rank}:{84 + rank} [{rank}] NCCL INFO comm 0x2af5240090d0 rank {rank} nranks 2 cudaDev {rank} busId 18000 - Abort COMPLETE\n"
    for rank in range(2)
)
SUMMARY = "[Rank 0] step=0, skipped=0, lr=[0.0]\n{'train_runtime': 14003.7762, 'train_samples_per_second': 270.328, 'train_steps_per_second': 0.141, 'train_loss': 5.25, 'epoch': 1.0}\n"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        pytest.param(OFFLINE + "\nstart\n" + CANCELLED, "preempted-or-hangup", id="it-coped"),
        pytest.param(OFFLINE + "\nstart\n" + RAISED, "user-exception", id="it-coped-and-raised"),
        pytest.param(RAISED + "start\n" * 30 + "Terminated\n", "user-exception", id="stopped"),
        pytest.param(RAISED + KILLED, "user-exception", id="killed-by-srun"),
        pytest.param(IGNORED, "user-exception", id="python-ignored-it"),
        pytest.param(UNSTARTED, "native-crash", id="another-program"),
        pytest.param(FETCHED, "hub-unreachable", id="nobody-answers-over-http"),
        pytest.param(MADE, "extension-build-failure", id="what-make-said"),
        pytest.param(BREAKPOINT, "process-stopped", id="at-a-breakpoint"),
        pytest.param(CHILD, "rendezvous-incomplete", id="a-child-whose-parent-left"),
    ],
)
def test_the_cause_is_what_ended_it(text: str, cause: str, tmp_path: Path) -> None:
    assert _explained(tmp_path, text).causes[0].id == cause


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        pytest.param(STEPS + AGENT, "undetermined", id="the-last-agent-warns"),
        pytest.param(AGENT, "crashed", id="an-agent-and-nothing-else"),
        pytest.param(STEPS + "nranks 2\n" + GIVEN_BACK, "healthy", id="communicators-given-back"),
        pytest.param(SUMMARY, "healthy", id="a-summary-of-steps"),
        pytest.param(SUMMARY.replace("14003.7762", "0.0098"), "crashed", id="nothing-was-left"),
    ],
)
def test_an_end_is_no_failure_because_somebody_complains(
    text: str, verdict: str, tmp_path: Path
) -> None:
    assert _explained(tmp_path, text).verdict == verdict


def test_a_message_ends_where_a_logger_speaks(tmp_path: Path) -> None:
    said = "[2031-02-03 04:05:06,007] torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: 1) local_rank: 0 (pid: 7) of binary: /usr/bin/python3\n"
    report = _explained(tmp_path, RAISED.replace("[rank0]: ", "") + said)

    assert "exitcode" not in report.causes[0].summary
    assert report.causes[0].id == "user-exception"


def _explained(folder: Path, text: str) -> Report:
    path = folder / "a.log"
    path.write_text(text, encoding="utf-8")
    return explain([str(path)])
