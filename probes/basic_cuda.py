# /// trainprobe
# rung: 40
# question: Does every GPU open, allocate and calculate correctly?
# scope: host
# needs: [torch, gpu]
# timeout_s: 90
# climbs: []
# after: [environment]
# means: The driver, a GPU or the permission to use it is at fault. Nothing else of the run
#   matters before that works.
# ///
"""Driver, context, allocation, copy and arithmetic on every GPU that torch sees, one after another.

Flags: --alloc-mb N (256, as NVIDIA's and AMD's own smoke tests take), --size N (edge of the
multiplied matrices).
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import _emit


def one_gpu(torch: Any, index: int, alloc_mb: int, size: int) -> None:
    """Raise, or emit a `fail`, for the first thing that does not work on this GPU."""
    device, who = f"cuda:{index}", f"gpu {index}"
    began = time.perf_counter()
    with _emit.phase(f"context:{index}"):
        torch.cuda.set_device(index)
        torch.cuda.synchronize()
    labels = {"threshold": 15, "source": "Primus node_smoke kills it after 15 s", "who": who}
    _emit.measure("context_s", round(time.perf_counter() - began, 3), "s", **labels)
    properties = torch.cuda.get_device_properties(index)
    free, total = torch.cuda.mem_get_info(index)
    _emit.measure("gpu_free", free, "bytes", who=who, total=total)
    sentence = (
        f"GPU {index} is a {properties.name} with {properties.multi_processor_count}"
        f" multiprocessors, capability {properties.major}.{properties.minor}."
    )
    _emit.note(
        sentence,
        name="gpu",
        index=index,
        model=properties.name,
        uuid=str(getattr(properties, "uuid", "")),
        total_bytes=total,
    )
    held = total - free
    if held > 0.5 * total:
        sentence = f"{held / 2**30:.1f} GiB of GPU {index} are held by others."
        _emit.check("drv.memused", "warn", sentence, held, fix="nvidia-smi shows by whom")
    with _emit.phase(f"allocate:{index}"):
        block = torch.empty(alloc_mb * 2**20, dtype=torch.uint8, device=device)
    with _emit.phase(f"copy:{index}"):
        pattern = torch.arange(alloc_mb * 2**20, dtype=torch.int64).to(torch.uint8)
        block.copy_(pattern)
        same = torch.equal(block.cpu(), pattern)
    if not same:
        _emit.fail(
            f"GPU {index} returned other bytes than were copied to it.", gpu=index, what="copy"
        )
        raise ArithmeticError("copy to the GPU and back")
    with _emit.phase(f"arithmetic:{index}"):
        # Small whole numbers: every product and sum is exact in float32, so the result must be
        # equal and not merely close.
        left = torch.arange(size * size, dtype=torch.float32).reshape(size, size) % 7
        right = torch.arange(size * size, dtype=torch.float32).reshape(size, size) % 5
        exact = torch.equal((left.to(device) @ right.to(device)).cpu(), left @ right)
    if not exact:
        _emit.fail(f"GPU {index} multiplied whole numbers wrongly.", gpu=index, what="matmul")
        raise ArithmeticError("matmul of whole numbers")


def main() -> None:
    parser = _emit.Parser(description=__doc__)
    parser.add_argument("--alloc-mb", type=int, default=256)
    parser.add_argument("--size", type=int, default=512)
    asked = parser.parse_args()
    with _emit.phase("import:torch"):
        import torch
    with _emit.phase("driver"):
        available, count = torch.cuda.is_available(), torch.cuda.device_count()
    if not available or not count:
        try:
            torch.cuda.init()
        except Exception as error:
            # torch's own words say whether it is the build, the driver or the device
            if (
                not os.path.exists("/proc/driver/nvidia")
                and not os.path.exists("/dev/nvidiactl")
                and not os.path.exists("/dev/kfd")
            ):
                _emit.result("cannot", "There is no GPU here.")
            sentence = "torch cannot use the GPUs of this host"
            _emit.fail_exception(sentence, error, visible=os.environ.get("CUDA_VISIBLE_DEVICES"))
        _emit.result("no", "torch sees no GPU that it can use.")
    sentence = f"torch {torch.__version__} sees {count} GPUs."
    _emit.note(sentence, name="gpus", count=count, cuda=torch.version.cuda)
    bad = []
    for index in range(count):
        try:
            one_gpu(torch, index, asked.alloc_mb, asked.size)
        except (
            Exception
            # each GPU gets its own verdict; after a sticky CUDA error the next ones fail in the
            # same words
        ) as error:
            bad.append(index)
            _emit.fail_exception(f"GPU {index} failed", error, gpu=index)
    if bad:
        _emit.result("no", f"GPUs {bad} of {count} failed.", at_once=True)
    _emit.result("yes", f"{count} GPUs open, allocate and calculate right.")


if __name__ == "__main__":
    main()
