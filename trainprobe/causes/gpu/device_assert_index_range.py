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
from trainprobe.causes.phrases import Fixes, fix, short, subject
from trainprobe.causes.positions import positions_line
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import Statement, first_to_fail, quote, statement
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


def _condition(scene: Scene) -> tuple[str, Fact] | None:
    """The assertion's own condition, where its line was seen."""
    heard = statement(scene, ASSERTED)
    if heard is not None:
        return heard.match.group("condition"), heard.fact
    for event in scene.events("device-assert"):
        condition = next(
            (
                event.captured[name]
                for name in ("condition", "assertion")
                if event.captured.get(name)
            ),
            "",
        )
        if condition:
            return condition, event
    return None


def _weigh(scene: Scene) -> Weighings:
    asserted, heard = _condition(scene), statement(scene, WORDING)
    if asserted is not None:
        condition, fact = asserted
        if INDEX.search(condition):
            yield weighing(
                26, "gpu", f"A kernel asserts {condition}: an index is outside its table", fact
            )
        elif NOT_FINITE.search(condition):
            says = (
                f"A kernel asserts {condition}, which rather speaks of values that are not finite"
            )
            yield weighing(6, "gpu", says, fact)
        else:
            yield weighing(13, "gpu", f"A kernel asserts {condition}", fact)
    if heard is not None:
        values = asserted is not None and NOT_FINITE.search(asserted[0]) is not None
        says = "It says"
        yield quote(
            3 if heard.late else 6 if values else 26 if _table(scene, heard) else 13, says, heard
        )
        yield from first_to_fail(scene) if not heard.late else ()
    elif asserted is None and (small := statement(scene, SMALL_CPU)) is not None:
        yield quote(6, "On the CPU an index is too large", small)


def _table(scene: Scene, heard: Statement) -> bool:
    """Did the CPU name a table of tokens or classes? Positions are `model-shape-fault`."""
    return (
        heard.origin
        and re.search(ON_CPU, heard.text) is not None
        and positions_line(scene.origin) is None
    )


def _what(scene: Scene) -> str:
    asserted = _condition(scene)
    if asserted is not None:
        event = asserted[1]
        file = ""
        if isinstance(event, LogEvent):
            file = event.captured.get("file") or event.captured.get("source") or ""
        name = f" in {file.rsplit('/', 1)[-1]}" if file else ""
        return f"the kernel{name} asserts {asserted[0]}"
    heard = statement(scene, WORDING)
    return short(heard.text, 120) if heard is not None else "a kernel's assertion"


def _summary(scene: Scene) -> str:
    frame = scene.own_frame
    place = f" at or before {frame.where}" if frame else ""
    return (
        f"{subject(scene)} used a label or an index that is outside its table{place}:"
        f" {_what(scene)}"
    )


def _fixes(scene: Scene) -> Fixes:
    frame = scene.own_frame
    place = "before the model is called"
    if frame is not None:
        place = f"just before {frame.base}:{frame.line}"
    ids = (
        f"{place}: assert 0 <= input_ids.min() and input_ids.max() <"
        " model.get_input_embeddings().num_embeddings"
    )
    return (
        fix(
            "Check the ranges where they come in",
            ids,
            "labels: assert labels[labels != -100].min() >= 0 and labels.max() < num_classes",
        ),
        fix("See the true line", "CUDA_LAUNCH_BLOCKING=1, or the same batch on the CPU"),
        fix(
            "After adding tokens",
            "model.resize_token_embeddings(len(tokenizer)); no longer sequences than"
            " max_position_embeddings",
        ),
    )


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
