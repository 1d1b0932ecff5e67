"""Lines of logs as reports quote them."""

from __future__ import annotations

import pytest

from trainprobe.logtext.quotes import cut_at_word, quoted_words

LINES = {
    "2023-02-17 22:40:24,365 (worker_7) : wandb: ERROR Error communicating": (
        "wandb: ERROR Error communicating"
    ),
    "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 27 closing signal": (
        "Sending process 27 closing signal"
    ),
    "[2024-02-09 09:09:15,164] torch.distributed.run: [ERROR] failed (exitcode: 1)": (
        "failed (exitcode: 1)"
    ),
    "[rank3]:[E1205 04:35:53.584 ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog caught": (
        "[Rank 3] Watchdog caught"
    ),
    "I0510 07:28:04.417845 139863945226048 c10d.py:337] Waiting in barrier": "Waiting in barrier",
    "[2024-01-22 16:50:49,553] [INFO] [launch.py:315:sigkill_handler] Killing 108": "Killing 108",
    "ERROR 02-11 21:40:13 worker_base.py:574] RuntimeError: no": "RuntimeError: no",
    "10/26 11:27:48 - mmengine - INFO - Evaluating bbox...": "Evaluating bbox...",
    "2024-02-27 15:56:22,424 - /env/_api.py[line:254] - DEBUG: Attempting to": "Attempting to",
    "2023-07-26 09:59:13.221 | INFO     | utils.train:__init__:52 - Searching": "Searching",
}
WHOLE = (
    "RuntimeError: CUDA error: an illegal memory access",
    "Error: failed to extend /dev/shm/nccl-abc",
    "Train: 20%| 375/1881 [3:40:16<14:52:25, 35.55s/it]",
    "node-a:77:91 [0] misc/socket.cc:483 NCCL WARN Connect failed",
    "[W socket.cpp:426] [c10d] The server socket has failed to bind",
    "2024-02-27 15:56:22",
    "",
)


@pytest.mark.parametrize("line", LINES)
def test_a_quote_leaves_out_who_wrote_it_and_when(line: str) -> None:
    assert quoted_words(line) == LINES[line]


@pytest.mark.parametrize("line", WHOLE)
def test_other_lines_are_quoted_whole(line: str) -> None:
    assert quoted_words(line) == line


def test_a_quote_ends_with_a_whole_word() -> None:
    words = "CUDA out of memory. Including non-PyTorch memory, this process has"
    assert cut_at_word(words, len(words)) == words
    assert cut_at_word(words, 44) == "CUDA out of memory. Including non-PyTorch…"
    assert cut_at_word(words, 51) == "CUDA out of memory. Including non-PyTorch memory…"
    assert cut_at_word("x" * 60, 20) == "x" * 19 + "…"
    assert all(len(cut_at_word(words, limit)) <= limit for limit in range(2, 70))
