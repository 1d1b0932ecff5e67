"""What the forked children try: a worker's calls, with the library that must survive a fork."""

from __future__ import annotations

import importlib
import logging
import os
import random
import sys
from typing import Any, Callable, Dict, List, NamedTuple

SIDE = 512  # a product of this size is cut up among threads by every BLAS


class Operation(NamedTuple):
    """`run` raises on failure; it may sleep `quiet_s` before it counts as hanging."""

    name: str
    library: str
    run: Callable[[], Any]
    quiet_s: float = 1.5
    pooled: bool = False


def product() -> None:
    """A product and a sum that torch hands to its threads."""
    torch = importlib.import_module("torch")
    torch.mm(torch.ones(SIDE, SIDE), torch.ones(SIDE, SIDE))
    torch.ones(1_000_000).add(1).sum()


def product_in_one_thread() -> None:
    """As DataLoader's workers have it (torch/utils/data/_utils/worker.py)."""
    importlib.import_module("torch").set_num_threads(1)
    product()


def numpy_product() -> None:
    numpy = importlib.import_module("numpy")
    numpy.ones((SIDE, SIDE)) @ numpy.ones((SIDE, SIDE))


def encode() -> None:
    tokenizers = importlib.import_module("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 1}, unk_token="b"))  # noqa: S106 - a token of text
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.encode_batch(["a b a b " * 50] * 64)


def blur() -> None:
    cv2, numpy = importlib.import_module("cv2"), importlib.import_module("numpy")
    cv2.GaussianBlur(numpy.ones((SIDE, SIDE, 3), dtype="uint8"), (9, 9), 0)
    cv2.resize(numpy.ones((SIDE, SIDE, 3), dtype="uint8"), (SIDE * 2, SIDE * 2))


def channel() -> None:
    """A channel of gRPC that is opened and closed; nobody need answer."""
    grpc = importlib.import_module("grpc")
    opened = grpc.insecure_channel("127.0.0.1:9")
    future = grpc.channel_ready_future(opened)
    future.cancel()
    opened.close()


def log() -> None:
    """Take the locks of all handlers, as a line of log would."""
    for logger in [logging.getLogger(), *logging.root.manager.loggerDict.values()]:
        for handler in getattr(logger, "handlers", ()):
            handler.acquire()
            handler.release()
    logging.getLogger("trainprobe.fork").debug("a line")


def chance() -> None:
    random.random()
    os.urandom(8)
    if "ssl" in sys.modules:
        sys.modules["ssl"].RAND_bytes(8)


def on_cuda() -> None:
    importlib.import_module("torch").zeros(1, device="cuda")


def map_of_datasets() -> Dict[str, Any]:
    """Whether the installed datasets.map starts a process at num_proc=1 and at None."""
    datasets = importlib.import_module("datasets")
    datasets.disable_progress_bars()
    rows = datasets.Dataset.from_dict({"row": [1, 2]})
    return {
        "version": str(datasets.__version__),
        "forks_at_one": _mapped_elsewhere(rows, 1),
        "forks_at_none": _mapped_elsewhere(rows, None),
    }


def _mapped_elsewhere(rows: Any, processes: Any) -> bool:
    return set(rows.map(_process, num_proc=processes, load_from_cache_file=False)["pid"]) != {
        os.getpid()
    }


def _process(row: Any) -> Dict[str, int]:
    del row
    return {"pid": os.getpid()}


def of_libraries() -> List[Operation]:
    """The operations of the libraries that are loaded in this process."""
    known = [
        Operation("torch.mm", "torch", product, pooled=True),
        Operation("torch.mm in one thread", "torch", product_in_one_thread, pooled=True),
        Operation("numpy @", "numpy", numpy_product, pooled=True),
        Operation("tokenizers encode_batch", "tokenizers", encode, pooled=True),
        Operation("cv2.GaussianBlur", "cv2", blur, pooled=True),
        Operation("grpc channel", "grpc", channel),
        Operation("logging", "logging", log),
        Operation("random and ssl", "random", chance),
    ]
    return [item for item in known if item.library in sys.modules]


def first_sample(source: Any) -> Callable[[], Any]:
    """Fetch one sample as a worker of a DataLoader does."""

    def fetch() -> None:
        torch = sys.modules.get("torch")
        if torch is not None and os.getpid() != MAIN:
            torch.set_num_threads(1)
        dataset = source.dataset
        if source.streams or source.kind == "opaque":
            next(iter(dataset))
        else:
            dataset[0]

    return fetch


MAIN = os.getpid()  # of the process that forks
