# /// trainprobe
# rung: 50
# question: Is one training step correct on one device, in fp32, bf16 and fp16, and how fast is
#   the device?
# scope: host
# needs: [torch]
# timeout_s: 90
# climbs: []
# after: [environment]
# means: The device calculates wrongly or far too slowly by itself, with no other rank taking
#   part.
# ///
"""One training step of a small network against a float64 reference on the CPU, then matrix
multiplication and copy rates.

Flags: --device cuda:N|cpu (TRAINPROBE_DEVICE, or the first GPU, else the CPU), --size N (edge of
the matrices), --seconds S (time for each rate).
"""

from __future__ import annotations

import os
import re
import sys
import time
from typing import Any, Callable, Dict, List, Tuple

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import _emit

# Largest relative error of the gradients. One rounding has 2**-24, 2**-8, 2**-11 (IEEE 754;
# bfloat16 has 8 bits). A step chains about ten of them over sums of 64-128 terms. Measured on a
# CPU: 7e-7, 1e-2, 1.3e-3. TF32, where a GPU uses it for fp32, has 2**-11.
TOLERANCE = {"fp32": 5e-3, "bf16": 8e-2, "fp16": 1e-2}


def step(torch: Any, device: str, dtype: Any) -> Tuple[float, List[Any]]:
    """Loss and gradients of one SGD step, in float64 on the CPU, from the same start."""
    generator = torch.Generator().manual_seed(7)
    network = torch.nn.Sequential(
        torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.LayerNorm(128), torch.nn.Linear(128, 16)
    )
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 8)
    inputs = torch.randn(128, 64, generator=generator)
    targets = torch.randint(16, (128,), generator=generator)
    network.to(device=device, dtype=dtype)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    loss = torch.nn.functional.cross_entropy(
        network(inputs.to(device=device, dtype=dtype)).to(
            torch.float64 if dtype == torch.float64 else torch.float32
        ),
        targets.to(device),
    )
    loss.backward()
    optimizer.step()
    return float(loss.detach()), [
        parameter.grad.detach().double().cpu() for parameter in network.parameters()
    ]


def rate(run: Callable[[], Any], settle: Callable[[], Any], seconds: float) -> float:
    """Return rounds a second: three rounds to warm up, then as many as fit."""
    for _ in range(3):
        run()
    settle()
    began, rounds = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        run()
        rounds += 1
        if rounds % 8 == 0:
            settle()
    settle()
    return rounds / (time.perf_counter() - began)


def steps(torch: Any, device: str, names: Dict[str, Any]) -> List[str]:
    """Compare one step in each dtype with the reference; return the wrong dtypes."""
    bad = []
    with _emit.phase("reference"):
        wanted_loss, wanted = step(torch, "cpu", torch.float64)
    for name, dtype in names.items():
        try:
            with _emit.phase(f"step:{name}"):
                loss, found = step(torch, device, dtype)
        except Exception as error:  # what torch raises is the answer
            # half precision on older CPU builds
            if device == "cpu" and "not implemented for" in str(error):
                sentence = f"{name} is not supported on {device} by this torch."
                _emit.note(sentence, name="unsupported", dtype=name)
                continue
            bad.append(name)
            _emit.fail_exception(
                f"A training step in {name} failed on {device}", error, dtype=name, device=device
            )
            continue
        worst = max(
            abs(loss - wanted_loss) / abs(wanted_loss),
            *(float((item - other).norm() / other.norm()) for item, other in zip(found, wanted)),
        )
        _emit.measure(
            "step_relative_error",
            worst,
            "ratio",
            threshold=TOLERANCE[name],
            source="rounding of the format over one step, see TOLERANCE",
            dtype=name,
            who=device,
        )
        if not (worst <= TOLERANCE[name] and all(bool(item.isfinite().all()) for item in found)):
            bad.append(name)
            sentence = (
                f"A training step in {name} on {device} is off by {worst:.2g}, more than"
                f" {TOLERANCE[name]:.2g}."
            )
            _emit.fail(sentence, dtype=name, device=device, error=worst)
    return bad


def rates(torch: Any, device: str, names: Dict[str, Any], size: int, seconds: float) -> None:
    on_gpu = device.startswith("cuda")
    settle = torch.cuda.synchronize if on_gpu else lambda: None
    size = size or (4096 if on_gpu else 512)
    for name in ("fp32", "bf16") if on_gpu else ("fp32",):
        with _emit.phase(f"matmul:{name}"):
            left, right = (
                torch.ones(size, size, dtype=names[name], device=device) for _ in range(2)
            )
            per_s = rate(lambda: left @ right, settle, seconds)  # noqa: B023 - run before the next round
        labels = {"dtype": name, "edge": size, "who": device, "threads": torch.get_num_threads()}
        _emit.measure("matmul_gflops", round(per_s * 2 * size**3 / 1e9, 1), "GFLOP/s", **labels)
    block = torch.ones((256 if on_gpu else 32) * 2**20, dtype=torch.uint8, device=device)
    copy = torch.empty_like(block)
    with _emit.phase("copy"):
        value = round(rate(lambda: copy.copy_(block), settle, seconds) * 2 * block.numel() / 1e9, 2)
        _emit.measure("copy_gb_s", value, "GB/s", who=device, counts="read and write")
    if on_gpu:
        pinned = torch.empty(64 * 2**20, dtype=torch.uint8, pin_memory=True)
        for name, run in {
            "host_to_gpu_gb_s": lambda: copy[: pinned.numel()].copy_(pinned, non_blocking=True),
            "gpu_to_host_gb_s": lambda: pinned.copy_(copy[: pinned.numel()], non_blocking=True),
        }.items():
            with _emit.phase(name):
                value = round(rate(run, settle, seconds) * pinned.numel() / 1e9, 2)
                _emit.measure(name, value, "GB/s", who=device)


def main() -> None:
    parser = _emit.Parser(description=__doc__)
    parser.add_argument("--device", default=os.environ.get("TRAINPROBE_DEVICE", ""))
    parser.add_argument("--size", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0.2)
    asked = parser.parse_args()
    with _emit.phase("import:torch"):
        import torch
    device = asked.device or ("cuda:0" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        _emit.result("cannot", f"--device {device!r} is neither cpu nor cuda:N.")
    if device.startswith("cuda") and not torch.cuda.is_available():
        _emit.result("cannot", f"torch sees no GPU for {device}.")
    names = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
    bad = steps(torch, device, names)
    if bad:
        _emit.result("no", f"Training steps in {', '.join(bad)} failed on {device}.")
    try:
        rates(torch, device, names, asked.size, asked.seconds)
    except Exception as error:  # what torch raises is the answer
        _emit.fail_exception(
            f"Steps are right on {device}, but larger work failed", error, device=device
        )
        _emit.result("no", f"Matrix multiplication or copy failed on {device}.")
    _emit.result("yes", f"Training steps on {device} agree with the reference.")


if __name__ == "__main__":
    main()
