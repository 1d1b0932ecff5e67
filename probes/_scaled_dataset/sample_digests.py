"""What a sample holds, in numbers that are equal in all processes for equal samples."""

from __future__ import annotations

import struct
import zlib
from typing import Any, Iterable, List, NamedTuple, Optional

DEPTH = 12


class NotComparableError(Exception):
    """Two such samples cannot be compared: they hold an object without visible values."""


class Shape(NamedTuple):
    """`keys` counts a dict's keys or a sequence's parts, else 1; `digest` None: not comparable."""

    keys: int
    digest: Optional[int]
    empty: bool


def shape(sample: Any) -> Shape:
    return Shape(keys_of(sample), digest([sample]), is_empty(sample))


def digest(samples: Iterable[Any]) -> Optional[int]:
    """Return one CRC-32 over all of them; None where one cannot be compared."""
    try:
        found = 0
        for sample in samples:
            found = _crc(sample, found, 0)
    # an object whose attributes raise when they are looked at; its reader has been asked already
    except Exception:
        return None
    return found


def combined(shapes: Iterable[Shape]) -> Optional[int]:
    """One digest of several samples in order; None if one cannot be compared or there is none."""
    found = [item.digest for item in shapes]
    known = [item for item in found if item is not None]
    return (
        zlib.crc32(struct.pack(f"<{len(known)}I", *known))
        if known and len(known) == len(found)
        else None
    )


def keys_of(sample: Any) -> int:
    if hasattr(sample, "keys") and callable(sample.keys):
        return len(list(sample.keys()))
    return len(sample) if isinstance(sample, (tuple, list)) else 1


def is_empty(sample: Any) -> bool:
    """Nothing in it: None, no keys, only None, or no value that has a length above zero."""
    if sample is None:
        return True
    if hasattr(sample, "keys") and callable(sample.keys):
        return all(is_empty(sample[key]) for key in sample.keys())  # noqa: SIM118 - a mapping of a library need not iterate over its keys
    if isinstance(sample, (list, tuple)):
        return all(is_empty(part) for part in sample)
    if hasattr(sample, "shape"):
        return 0 in tuple(sample.shape)
    return isinstance(sample, (str, bytes)) and not sample


def rows_in(batch: Any, default: int) -> int:
    """How many rows a batch holds; `default` where that does not show."""
    while hasattr(batch, "keys") and callable(batch.keys) and list(batch.keys()):
        batch = batch[next(iter(batch.keys()))]
    if hasattr(batch, "shape"):
        return int(batch.shape[0]) if len(batch.shape) else 1
    if isinstance(batch, (list, tuple)) and batch:
        first = batch[0]
        return int(first.shape[0]) if hasattr(first, "shape") and len(first.shape) else len(batch)
    return default


def _crc(value: Any, crc: int, depth: int) -> int:
    if depth > DEPTH:
        raise NotComparableError
    return zlib.crc32(_form(value, depth), zlib.crc32(type(value).__name__.encode(), crc))


def _form(value: Any, depth: int) -> bytes:
    if value is None or isinstance(value, (bool, int, str)):
        return str(value).encode("utf-8", "surrogatepass")
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, (list, tuple)):
        return _joined(value, depth)
    if hasattr(value, "keys") and callable(value.keys):
        return _joined(
            (part for key in sorted(value.keys(), key=str) for part in (key, value[key])), depth
        )
    if isinstance(value, (set, frozenset)):
        return b"".join(
            struct.pack("<I", item) for item in sorted(_crc(part, 0, depth + 1) for part in value)
        )
    return _form_of_object(value, depth)


def _form_of_object(value: Any, depth: int) -> bytes:
    # a tensor; bfloat16 is unknown to numpy, its bytes are not
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        import torch

        flat = value.detach().cpu().contiguous()
        return bytes(
            f"{flat.dtype}{tuple(flat.shape)}".encode()
            + flat.reshape(-1).view(torch.uint8).numpy().tobytes()
        )
    if (
        hasattr(value, "dtype")
        and hasattr(value, "tobytes")
        and not getattr(value.dtype, "hasobject", False)
    ):
        return bytes(f"{value.dtype}{getattr(value, 'shape', ())}".encode() + value.tobytes())
    if hasattr(value, "tolist") and hasattr(value, "dtype"):
        return _joined(value.tolist(), depth)
    if hasattr(value, "tobytes") and hasattr(value, "size") and hasattr(value, "mode"):  # a picture
        return bytes(f"{value.mode}{value.size}".encode() + value.tobytes())
    inner = {
        **getattr(value, "__dict__", {}),
        **{
            name: getattr(value, name)
            for name in getattr(type(value), "__slots__", ())
            if hasattr(value, name)
        },
    }
    if inner:
        return _joined((part for name in sorted(inner) for part in (name, inner[name])), depth)
    text = repr(value)
    if " at 0x" in text:
        raise NotComparableError
    return text.encode("utf-8", "surrogatepass")


def _joined(values: Iterable[Any], depth: int) -> bytes:
    return b"".join(struct.pack("<I", _crc(part, 0, depth + 1)) for part in values)


class Digests:
    """A collate function that gives (worker or -1, digest, keys, empty, length) for each sample."""

    def __call__(self, samples: Any) -> List[Any]:
        import torch.utils.data

        worker = torch.utils.data.get_worker_info()
        try:
            length = len(worker.dataset) if worker is not None else -1
        except Exception:  # an iterable has none
            length = -1
        rows = samples if isinstance(samples, list) else [samples]
        return [[worker.id if worker is not None else -1, *shape(row), length] for row in rows]


class Draws:
    """A collate function that draws from Python's, torch's and numpy's generators in a worker."""

    def __call__(self, samples: Any) -> List[Any]:
        import random
        import sys

        import torch
        import torch.utils.data

        worker = torch.utils.data.get_worker_info()
        numpy = sys.modules.get("numpy")
        drawn = [
            random.random(),
            float(torch.rand(1, dtype=torch.float64)),
            float(numpy.random.random()) if numpy is not None else None,
        ]
        return [
            worker.id if worker is not None else -1,
            *drawn,
            digest(samples if isinstance(samples, list) else [samples]),
        ]
