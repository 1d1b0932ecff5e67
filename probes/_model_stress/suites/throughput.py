"""How many tokens a second a step takes, forward, backward and AdamW, with its spread, beside a
peer shape of as many tokens. It never finds a fault.

Numbers: throughput.rate (tokens/s, or rows/s where nothing counts positions; median, quartiles as
labels low and high), throughput.step_s and throughput.peak_memory, each with rows and length. A
step that keeps its graph is noted.
"""

from __future__ import annotations

import gc
import resource
import statistics
import time
from typing import Any, List, NamedTuple, Optional, Tuple

import torch

from _model_stress.findings import Findings
from _model_stress.tested_model import TestedModel
from _shared.child_program import summary_of

WARM_UP = 2  # steps: the first allocate, choose kernels and make the optimizer's moments
LENGTH = 64
ROWS = 4
SLOWER = 1.3  # from third to third of the steps: more than a busy host's swing


class MaskBench(NamedTuple):
    """`rates` in tokens (or rows) a second, one per step; `held` tensors of a graph alive after the
    warm-up and at the end; `own_s` the thread's own time per step, which a busy host does not
    stretch.
    """

    rows: int
    length: Optional[int]
    rates: List[float]
    held: Tuple[int, int]
    own_s: List[float]

    @property
    def shape(self) -> str:
        return f"{self.rows}x{self.length}" if self.length is not None else f"{self.rows} rows"


def run(tested: TestedModel, findings: Findings) -> None:
    """Raises what the model raises in a step."""
    model = tested.build(tested.request.seed).train()
    own, longest = tested.own_length, tested.traits.max_length
    length = own
    if own is not None and tested.traits.resizes and tested.traits.forward_s < 0.1:
        length = max(own, min(LENGTH, longest or LENGTH))
    shapes: List[Tuple[int, Optional[int]]] = [(ROWS, length)]
    if length is not None and tested.traits.resizes and length >= 4:
        shapes.append((2 * ROWS, length // 2))
        up = 64 if length >= 64 else 8
        even = length // up * up
        if even >= up:  # an odd length, and the next that fills a vector
            shapes += [(ROWS, even - 1), *([(ROWS, even)] if even != length else [])]
    found: List[MaskBench] = []
    optimizer = torch.optim.AdamW(
        [item for item in model.parameters() if item.requires_grad]
        or [torch.zeros(1, requires_grad=True)],
        lr=1e-5,
    )
    for place, (rows, wide) in enumerate(shapes):
        share_s = min(2.0, 0.7 * findings.left_s() / (len(shapes) - place))
        if share_s < 0.2:
            findings.note(f"No time was left for {rows}x{wide}.")
            break
        findings.step(f"{rows}x{wide}")
        try:
            item = _bench(tested, model, optimizer, rows, wide, share_s)
        except Exception as error:  # another shape may be refused, and is told
            if not found:
                raise
            findings.note(f"{rows}x{wide} is not measured: {summary_of(error)}")
            continue
        found.append(item)
        _report(tested, findings, item)
    _summary(findings, found)


def _bench(
    tested: TestedModel,
    model: Any,
    optimizer: Any,
    rows: int,
    length: Optional[int],
    share_s: float,
) -> MaskBench:
    batch = tested.batch(rows, length, seed=1, model=model)
    if tested.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    rates: List[float] = []
    own_s: List[float] = []
    before, began = 0, time.perf_counter()
    for step in range(WARM_UP + tested.request.bench_steps):
        if step == WARM_UP:
            before, began = _graphs(), time.perf_counter()
        at, mine = time.perf_counter(), time.thread_time()
        ran = tested.run(model, batch, seed=step, grad=True)
        if ran.loss.requires_grad:
            ran.loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        del ran
        if tested.device == "cuda":
            torch.cuda.synchronize()
        took_s = time.perf_counter() - at
        if step >= WARM_UP:
            rates.append(batch.rows * (batch.length or 1) / took_s)
            own_s.append(time.thread_time() - mine)
        if len(rates) >= 3 and time.perf_counter() - began > share_s:
            break
    return MaskBench(batch.rows, batch.length, rates, (before, _graphs()), own_s)


def _graphs() -> int:
    """How many tensors that hang on a graph are alive."""
    gc.collect()
    return sum(
        1
        for item in gc.get_objects()
        if issubclass(type(item), torch.Tensor) and item.grad_fn is not None
    )


def _quartiles(values: List[float]) -> Tuple[float, float, float]:
    if len(values) < 2:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def _report(tested: TestedModel, findings: Findings, item: MaskBench) -> None:
    low, middle, high = _quartiles(item.rates)
    labels = {"rows": item.rows, "length": item.length or 0}
    findings.number(
        "throughput.rate",
        middle,
        _unit(item),
        low=round(low, 1),
        high=round(high, 1),
        steps=len(item.rates),
        threads=torch.get_num_threads(),
        **labels,
    )
    findings.number("throughput.step_s", item.rows * (item.length or 1) / middle, "s", **labels)
    peak = (
        torch.cuda.max_memory_allocated()
        if tested.device == "cuda"
        else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    )
    findings.number("throughput.peak_memory", float(peak), "bytes", **labels)
    grown = item.held[1] - item.held[0]
    if grown >= len(item.rates):
        findings.note(
            f"{grown} tensors of graphs stay alive over {len(item.rates)} steps at {item.shape}:"
            " each step's graph is kept, and memory grows.",
            warn=True,
        )
    if len(item.own_s) >= 9:
        third = len(item.own_s) // 3
        first, second, last = (
            1000 * statistics.median(item.own_s[at : at + third]) for at in (0, third, 2 * third)
        )
        if second > SLOWER * first and last > SLOWER * second:
            findings.note(
                f"Steps slow down at {item.shape}: {first:.1f} ms of its own thread, then"
                f" {second:.1f}, then {last:.1f}.",
                warn=True,
            )


def _unit(item: MaskBench) -> str:
    return "tokens/s" if item.length is not None else "rows/s"


def _summary(findings: Findings, found: List[MaskBench]) -> None:
    low, middle, high = _quartiles(found[0].rates)
    sentence = f"{middle:,.0f} {_unit(found[0])} ({low:,.0f}\u2013{high:,.0f}) at {found[0].shape}"
    for item in found[1:]:
        sentence += f", {_quartiles(item.rates)[1] / middle:.2f} of that at {item.shape}"
    findings.summary(sentence)
