"""A label or an index is outside its table, and the GPU kernel asserts.

A token id beyond the embedding, a label beyond the classes, a position beyond the table of
positions: the kernel checks, asserts, and poisons the whole CUDA context. Every later call fails,
in cuBLAS, cuDNN or NCCL, often on another Python line. On the CPU the same mistake raises at once.

It is recognised by the kernel's assertion (`srcIndex < srcSelectDimSize`, `t >= 0 && t <
n_classes`, `index out of bounds`), by "device-side assert triggered", and by the CPU's "index out
of range in self" or "Target N is out of bounds". Assertions about probabilities point rather to
NaN.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause
from trainprobe.causes.phrases import Fixes, fixes, short, subject
from trainprobe.causes.positions import positions_line
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.signs import quoted
from trainprobe.causes.statements import Statement, first_to_fail, quote, statement, text_of
from trainprobe.facts import LogEvent
from trainprobe.model.facts import Fact
from trainprobe.signatures.messages import message

TRIGGERED = message("device-assert-index-range.triggered")
ON_CPU = message("device-assert-index-range.on-cpu")
WORDING = f"{TRIGGERED}|{ON_CPU}"
ASSERTED = message("device-assert-index-range.asserted")
# torch's own conditions; Inductor writes `index out of bounds: 0 <= tmp5 < 10`.
INDEX = re.compile(
    r"src(?:Select)?Index|[sS]electDimSize|dim_size|index\w* out of bounds|out of"
    r" bounds|n_classes|\bidx_dim|ind(?:ex)? *[<>]|index *>=|\bt >= 0|\b0 <= tmp"
)
NOT_FINITE = re.compile(
    r"isnan|isinf|cumdist|sum_prob|0 ?<= ?p\d|val ?>= ?zero(?! *&&"
    r" *input_val)|probability|prob\w*\["
)
SMALL_CPU = r"index -?\d+ is out of bounds for dimension \d+ with size \d+"
FIXES = """
Check the ranges where they come in
    {place}: assert 0 <= input_ids.min() and input_ids.max() <
        model.get_input_embeddings().num_embeddings
    labels: assert labels[labels != -100].min() >= 0 and labels.max() < num_classes
See the true line
    CUDA_LAUNCH_BLOCKING=1, or the same batch on the CPU
After adding tokens
    model.resize_token_embeddings(len(tokenizer)); no longer sequences than max_position_embeddings
"""


def _condition(scene: Scene) -> tuple[str, Fact] | None:
    """The assertion's own condition, if its line was found."""
    found = statement(scene, ASSERTED)
    if found is not None:
        return found.match.group("condition"), found.fact
    for event in scene.events("device-assert"):
        told = (event.captured.get(name) for name in ("condition", "assertion", "cut"))
        condition = next(filter(None, told), None)
        if condition:
            return condition, event
    return None


def _weigh(scene: Scene) -> Weighings:
    asserted, found = _condition(scene), statement(scene, WORDING)
    of_values = asserted is not None and NOT_FINITE.search(asserted[0]) is not None
    if asserted is not None:
        condition, fact = asserted
        points, says = 13, f"A kernel asserts {condition}"
        if INDEX.search(condition):
            points, says = 26, f"{says}: an index is outside its table"
        elif of_values:
            points, says = 6, f"{says}, which rather speaks of values that are not finite"
        yield weighing(points, "gpu", says, fact)
    if found is not None:
        points = 3 if found.late else 6 if of_values else 26 if _table(scene, found) else 13
        yield quote(points, "It says", found)
        yield from first_to_fail(scene) if not found.late else ()
    elif asserted is None:
        yield from quoted(6, "On the CPU an index is too large", SMALL_CPU)(scene)


def _table(scene: Scene, found: Statement) -> bool:
    """Did the CPU name a table of tokens or classes? Positions are `model-shape-fault`."""
    on_cpu = re.search(ON_CPU, found.text) is not None
    return found.origin and on_cpu and positions_line(scene.origin) is None


def _summary(scene: Scene) -> str:
    found, asserted = statement(scene, WORDING), _condition(scene)
    what = short(found.text, 120) if found is not None else "a kernel's assertion"
    if asserted is not None:
        condition, event = asserted
        captured = event.captured if isinstance(event, LogEvent) else {}
        file = captured.get("file") or captured.get("source") or ""
        name = f" in {file.rsplit('/', 1)[-1]}" if file else ""
        what = f"the kernel{name} asserts {condition}"
    frame = scene.own_frame
    return (
        f"{subject(scene)} used a label or an index that is outside its table"
        f"{f' at or before {frame.where}' if frame else ''}: {what}"
    )


LABEL = re.compile(r"[Tt]arget (-?\d+) is out of bounds")  # aten/src/ATen/native/LossNLL.cpp
LABELS = """
Check the labels where they come in
    {place}: assert labels[labels != -100].min() >= 0 and labels.max() < num_classes
    this batch holds the label {label}: count the classes of the data set, and whether they begin at
        0, against the size of the last layer
"""


def _fixes(scene: Scene) -> Fixes:
    frame = scene.own_frame
    label = LABEL.search(text_of(scene.origin)) if scene.origin is not None else None
    if label is not None:  # raised on the CPU: its line is the true one
        place = f"before {frame.base}:{frame.line}" if frame else "before the loss"
        return fixes(LABELS, place=place, label=label[1])
    place = f"just before {frame.base}:{frame.line}" if frame else "before the model is called"
    return fixes(FIXES, place=place)


CAUSE = Cause(
    id="device-assert-index-range",
    title="A label or an index is outside its table",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="the same batch with CUDA_LAUNCH_BLOCKING=1, or on the CPU",
    refines="user-exception",
    accounts_for=("cuda-oom", "illegal-memory-access", "native-crash"),
    wording=WORDING,
)
