"""Exceptions that only repeat another rank's death or absence, as opposed to those that began the
trouble.
"""

from __future__ import annotations

import re

# (part of the message, what it repeats). Wordings: gloo's transport/tcp, c10d's TCPStore and
# socket.cpp, NCCL and torchrun as of torch 2.13.
_PEER_GONE = (
    ("Connection closed by peer", "connection-closed"),
    ("Connection reset by peer", "connection-reset"),
    ("Broken pipe", "broken-pipe"),
    ("Connection refused", "connection-refused"),
    ("Failed to recv, got 0 bytes", "store-closed"),
    ("failed to recv, got 0 bytes", "store-closed"),
    ("recvValue failed", "store-closed"),
    ("recvValueWithTimeout failed", "store-closed"),
    ("recvVector failed", "store-closed"),
    ("sendBytes failed", "store-closed"),
    ("Application timeout caused pair closure", "peer-timeout"),
    ("Socket Timeout", "store-timeout"),
    ("remote process exited or there was a network error", "nccl-remote"),
    ("ncclRemoteError", "nccl-remote"),
    ("NCCL communicator was aborted", "nccl-aborted"),
    ("aught collective operation timeout", "collective-timeout"),
    (" timed out in blocking wait", "collective-timeout"),
    (" timed out in call to wait", "collective-timeout"),
)
_NOBODY_CAME = (
    ("Timed out waiting", "collective-timeout"),
    ("] Read timeout [", "collective-timeout"),  # gloo before 2020
    ("] Write timeout [", "collective-timeout"),
    ("wait timeout after", "store-timeout"),
    ("failed to pass monitoredBarrier", "barrier-timeout"),
    ("timed out in monitoredBarrier", "barrier-timeout"),
    ("successfully reached monitoredBarrier, but", "barrier-timeout"),
    ("Timed out initializing process group in store based barrier", "rendezvous-timeout"),
    ("Timed out after", "rendezvous-timeout"),
    ("The client socket has timed out after", "rendezvous-timeout"),
    ("Connection was likely closed", "store-closed"),
    # vLLM's executor, of a worker that does not answer
    ("RPC call to execute_model timed out", "peer-timeout"),
    ("RPC call to sample_tokens timed out", "peer-timeout"),
)
# Evidence of a mismatch, whatever else stands in the message: such a rank did something itself.
_ORIGINS = (
    "doesn't match expected size",
    "op.preamble.length <= op.nbytes",
    "Detected mismatch between collectives",
    "Mismatched collective",
    "address already in use",
    "EADDRINUSE",
    "failed to bind",
    "Too many open files",
    "No route to host",
)
_TYPES = {
    "DistNetworkError": "network",
    "DistStoreError": "store",
    "BrokenPipeError": "broken-pipe",
    "ConnectionResetError": "connection-reset",
}
_DIST_ERRORS = ("DistBackendError", "DistNetworkError", "DistStoreError")
_LAUNCHER_ERRORS = frozenset(
    "ChildFailedError ProcessRaisedException ProcessExitedException SignalException ActorDiedError"
    " RayActorError WorkerCrashedError EngineDeadError MQEngineDeadError"
    " ExecuteUserScriptError".split()
)
# Ranks that look for their peer on their own host were given a wrong address.
_LOOPBACK_PEER = re.compile(r"connectFullMesh failed[^\n]{0,300}remote=\[127\.|\bconnect \[127\.\d")
# What a launcher raises about a child of its own, by the file of its frames; elsewhere such a child
# is the program's own (ffmpeg, ninja).
_LAUNCHERS = (
    "torch/distributed/launch.py",
    "torch/distributed/run.py",
    "accelerate/commands/launch.py",
    "deepspeed/launcher/",
)
# The same in a fragment that shows no frames: an interpreter was started with a script.
_RUNS_PYTHON = re.compile(
    r"Command '?\[['\"][^'\"\n]{0,300}python[\d.]{0,8}(?:\.exe)?['\"],(?:"
    r" ['\"]-[a-zA-Z]['\"],){0,3} ['\"][^'\"\n]{1,300}\.py['\"]"
)
# A launcher of ranks among the words of the command, whoever ran it.
_RUNS_LAUNCHER = re.compile(
    r"Command .{0,300}?(?:torch\.distributed\.(?:run|launch)\b"
    r"|\b(?:torchrun|accelerate|deepspeed|horovodrun|mpirun|mpiexec)\b['\", ])"
)
# What the process that waits for others says when one of them has ended: vLLM's engine and its
# server, Spark's TorchDistributor, horovodrun and Horovod's ranks, SageMaker's toolkit.
_OTHERS_ENDED = (
    "See stack trace (above) for the root cause",
    "Engine core initialization failed",
    "Engine process failed to start",
    "TorchDistributor failed during training",
    "Horovod detected that one or more processes exited",
    "Horovod has been shut down. This was caused by an exception on one of the ranks",
)
# The texts of the system's errors are RuntimeErrors only where C++ throws them: the TCPStore of
# torch 1.0 to 1.9. The two timeouts are all that c10d's socket.cpp and its stores say of theirs.
_ERRNO_TEXTS = {
    "Connection timed out": "rendezvous-timeout",
    "Connection refused": "connection-refused",
    "Connection reset by peer": "connection-reset",
    "Socket Timeout": "store-timeout",
    "Wait timeout": "store-timeout",
}
# Only these types can carry another rank's end; a KeyError with such words in it is the user's own.
_CARRIERS = frozenset(
    "RuntimeError DistBackendError DistNetworkError DistStoreError DistError TimeoutError"
    " ConnectionError OSError".split()
)
_CARRIERS_OF_PEERS = frozenset(
    "ConnectionResetError BrokenPipeError ConnectionRefusedError EOFError"
    " ConnectionAbortedError".split()
)
# Where a call of torch.distributed waits for its end: old gloo says no more than that time was up.
_WAITS_FOR_ALL = "torch/distributed/distributed_c10d.py"
_TIMED_OUT = re.compile(r"(?i)\btimed[ -]?out\b|\btimeout\b")
_DISTRIBUTED = tuple(
    "gloo c10d nccl NCCL tcp/pair.cc torch/distributed torch/csrc/distributed Store".split()
)


_STARTS_CHILDREN = re.compile(r"multiprocess(?:ing)?[/\\](?:spawn|forkserver)\.py$")
_CUT_SHORT = "pickle data was truncated"


def echo_of(type_name: str, message: str, files: tuple[str, ...] = ()) -> str:
    """Return what this exception repeats (connection-closed, collective-timeout …), or "" when it
    stands for itself.

    `files` are those of its frames: a socket error raised outside torch.distributed is the
    program's own affair.
    """
    name = type_name.rsplit(".", 1)[-1]
    # mp.spawn before torch 1.8 raised a plain Exception.
    spawned = message.lstrip().startswith("-- Process ") and " terminated with" in message
    if (
        spawned
        or name in _LAUNCHER_ERRORS
        or any(words in message[:400] for words in _OTHERS_ENDED)
    ):
        return "launcher"
    if name == "CalledProcessError":
        ours = any(part in file.replace("\\", "/") for file in files for part in _LAUNCHERS)
        ours = ours or _RUNS_LAUNCHER.match(message) is not None
        return "launcher" if ours or (not files and _RUNS_PYTHON.match(message)) else ""
    if files and _STARTS_CHILDREN.search(files[-1]) and _CUT_SHORT in message:
        return "stopped"  # who started it was ended, or failed, while it sent what is to be done
    if name == "RuntimeError" and message.strip() in _ERRNO_TEXTS:
        return _ERRNO_TEXTS[message.strip()]
    if any(words in message for words in _ORIGINS) or _LOOPBACK_PEER.search(message):
        return ""
    distributed = any(word in message for word in _DISTRIBUTED) or any(
        "torch/distributed" in file for file in files
    )
    if name in _CARRIERS:
        for words, what in (*_PEER_GONE, *_NOBODY_CAME):
            sure = distributed or name in _DIST_ERRORS or words in _UNMISTAKABLE
            if sure and words in message:
                return what
        if files and files[-1].endswith(_WAITS_FOR_ALL) and _TIMED_OUT.search(message[:200]):
            return "collective-timeout"
    if name in _CARRIERS_OF_PEERS:
        return _TYPES.get(name, "connection-closed") if distributed else ""
    return _TYPES[name] if name in ("DistNetworkError", "DistStoreError") else ""


_UNMISTAKABLE = frozenset(
    {
        "Application timeout caused pair closure",
        "remote process exited or there was a network error",
        "ncclRemoteError",
        "NCCL communicator was aborted",
        "aught collective operation timeout",
        " timed out in blocking wait",
        " timed out in call to wait",
        "successfully reached monitoredBarrier, but",
        "The client socket has timed out after",
        "wait timeout after",
        "failed to pass monitoredBarrier",
        "timed out in monitoredBarrier",
        "RPC call to execute_model timed out",
        "RPC call to sample_tokens timed out",
        "Timed out initializing process group in store based barrier",
    }
)
