"""Random configurations: an accepted one must run, stay finite and survive its state dict."""

from __future__ import annotations

import shlex
from typing import Any, Dict, List, NamedTuple, Optional, Set

import torch

from _model_stress import config_options as drawing
from _model_stress.batches import Batch
from _model_stress.config_options import Options
from _model_stress.fault_location import (
    Opened,
    first_not_finite,
    ill_gradients,
    opened,
    own_frame,
    recorded,
)
from _model_stress.findings import Findings
from _model_stress.tested_model import TestedModel
from _shared.child_program import summary_of

LENGTH = 8
REFUSALS = (ValueError, AssertionError, TypeError, NotImplementedError, RuntimeError)
UNJUDGED = ("refused", "large", "left")
RETRIES = 3  # of a configuration that was refused or not judged, each with half of its changes
CAP = 4_000_000  # parameters, or four times as many as the model has as it is given
NOT_THE_MODELS = ("out of memory", "not enough memory", "can't allocate memory")
# The sample's values do not fit what this option sets: another sample would do.
OF_THE_DATA = (
    "is out of bounds",
    "target size",
    "kernel size can't be greater",
    "output size is too small",
)


class Tried(NamedTuple):
    """`how` is works, refused, large, left (unsuitable), or the failed step: built to state."""

    how: str
    sentence: str = ""
    error: Optional[BaseException] = None
    module: str = ""

    @property
    def failed(self) -> bool:
        return self.how not in ("works", *UNJUDGED)

    @property
    def signature(self) -> Any:
        frame = own_frame(self.error) if self.error is not None else None
        return (
            self.how,
            type(self.error).__name__,
            (frame.filename, frame.lineno) if frame else self.module,
        )


class Trier:
    """Tries configurations. A fault of the model's own configuration is not held against others."""

    def __init__(self, tested: TestedModel, findings: Findings, *, library: bool) -> None:
        self.tested, self.findings, self.library = tested, findings, library
        own = tested.own_length
        self.length = own if own is None or not tested.traits.resizes else min(own, LENGTH)
        self.skipped: Set[str] = set()
        for _ in range(4):
            first = self.tried({})
            if not first.failed:
                break
            self.skipped.add(first.how)
        self.known: Dict[str, Tried] = {}

    def _batch(self, model: Any) -> Batch:
        return self.tested.batch(2, self.length, seed=19, model=model)

    def remembered(self, changed: Options) -> Tried:
        key = repr(sorted(changed.items()))
        if key not in self.known:
            self.known[key] = self.tried(changed)
        return self.known[key]

    def tried(self, changed: Options) -> Tried:
        """Build one, run it and load its state into another."""
        seed = self.tested.request.seed
        try:
            model = self.tested.build(seed, options=changed)
        except REFUSALS as error:
            return Tried("refused", str(error)[:200], error)
        except MemoryError:
            return Tried("left")
        except Exception as error:  # anything else is no refusal
            if self.library:  # its configuration has lists that must fit its counts
                return Tried("refused", summary_of(error), error)
            return Tried("built", f"is not built ({summary_of(error)})", error)
        if sum(item.numel() for item in model.parameters()) > max(
            CAP, 4 * self.tested.traits.parameters
        ):
            return Tried("large")
        doing = "forward"
        with opened(model) as now:
            batch = None
            try:
                batch = self._batch(model)
                ran = self.tested.run(model, batch, seed=7)
                model.train()
                trained = self.tested.run(model, batch, seed=7, grad=True)
                doing = "backward"
                trained.loss.backward()
            except Exception as error:  # whatever the user's model raises is what was looked for
                leaves = (
                    list(self._batch(model).leaves().values())
                    if batch is None
                    else list(batch.leaves().values())
                )
                return self._raised(
                    doing, error, now, fits=not (doing == "forward" and now.takes(leaves))
                )
        if not bool(torch.isfinite(ran.loss)) and "finite" not in self.skipped:
            module = self._begins(model.eval(), batch)
            return Tried(
                "finite",
                f"has a loss of {float(ran.loss):.3g}"
                + (f", which begins in {module}" if module else ""),
                module=module,
            )
        ill = ill_gradients(model)
        if ill and "gradients" not in self.skipped and "finite" not in self.skipped:
            return Tried(
                "gradients", f"gets a gradient that is not finite for {ill[0]}", module=ill[0]
            )
        return (
            self._state(model.eval(), batch, changed)
            if "state" not in self.skipped
            else Tried("works")
        )

    def _raised(self, doing: str, error: BaseException, now: Opened, *, fits: bool) -> Tried:
        text, module = str(error).lower(), now.innermost()
        if (
            doing in self.skipped
            or isinstance(error, (MemoryError, NotImplementedError))
            or any(part in text for part in NOT_THE_MODELS)
        ):
            return Tried("left", summary_of(error), error)
        if not fits or any(part in text for part in OF_THE_DATA):
            return Tried("left", summary_of(error), error)
        sentence = f"fails {doing}{f' in {module}' if module else ''} ({summary_of(error)})"
        return Tried(doing, sentence, error, module)

    def _begins(self, model: Any, batch: Batch) -> str:
        with recorded(model) as calls:
            self.tested.run(model, batch, seed=7)
        name = first_not_finite(calls)
        return type(model).__name__ if name == "" else name or ""

    def _state(self, model: Any, batch: Batch, changed: Options) -> Tried:
        """Load its state dict into a model with other weights; compare names and outputs."""
        try:
            before = self.tested.run(model, batch, seed=7)
            other = self.tested.build(self.tested.request.seed + 1, options=changed)
            other.load_state_dict(model.state_dict())
            after = self.tested.run(other, batch, seed=7)
        except Exception as error:  # missing names, other sizes, or what the model raises
            return Tried("state", f"cannot load its own state dict ({summary_of(error)})", error)
        if self.tested.traits.noisy:
            return Tried("works")
        worst = after.gap(before)
        return (
            Tried("works")
            if worst <= 1e-5
            else Tried(
                "state",
                "gives different outputs after its state dict is loaded into a new model"
                f" ({worst:.2g})",
            )
        )


def written(changed: Options) -> str:
    """`heads=3,hidden=8`, by name."""
    return ",".join(f"{name}={value}" for name, value in sorted(changed.items()))


def shrunk(trier: Trier, changed: Options, defaults: Options, signature: Any) -> Options:
    """The smallest change that still fails so: reset options one by one, then approach defaults."""

    def fails(candidate: Options) -> bool:
        return (
            trier.findings.left_s() > 1.0
            and bool(candidate)
            and trier.remembered(candidate).signature == signature
        )

    found, again = dict(changed), True
    while again:
        again = False
        for name in sorted(
            found, key=lambda item: (not isinstance(found[item], (bool, float)), item)
        ):
            others = {key: value for key, value in found.items() if key != name}
            candidate = drawing.changes(drawing.fitted({**defaults, **others}, defaults), defaults)
            if len(candidate) >= len(found):
                # it fails at the same line, so that what follows it only to fit is not needed to
                # tell it
                candidate = others
            if fails(candidate):
                found, again = candidate, True
                break
    for name in sorted(found):
        for value in drawing.nearer(found[name], defaults[name]):
            candidate = drawing.changes(
                drawing.fitted({**defaults, **found, name: value}, defaults), defaults
            )
            if len(candidate) <= len(found) and candidate.get(name) == value and fails(candidate):
                found = candidate
                break
    return found


def _again(tested: TestedModel) -> str:
    request = tested.request
    arguments = [
        "model_stress.py",
        "--model",
        request.model,
        *(["--sample", request.sample] if request.sample else []),
        "--suites",
        "fuzz",
    ]
    return " ".join(
        shlex.quote(item)
        for item in [*arguments, "--fuzz", str(request.fuzz), "--seed", str(request.seed)]
    )


def run(tested: TestedModel, findings: Findings) -> None:
    if not tested.request.fuzz:
        findings.skip("no configurations were asked for (--fuzz 0)")
    every = tested.options()
    config = getattr(tested.build(tested.request.seed), "config", None)
    library = (type(config).__module__ or "").startswith("transformers.") and all(
        hasattr(config, name) for name in every
    )
    defaults = drawing.variable(every, library=library)
    trier = Trier(tested, findings, library=library)
    defaults = {
        name: value
        for name, value in defaults.items()
        if len(drawing.others(name, value, trier.length or 1)) > 1
    }
    if not defaults:
        findings.skip(
            "neither the factory nor a configuration has numeric or boolean options that may be"
            " varied"
        )
    picked = drawing.drawn(defaults, tested.request.seed, tested.request.fuzz, trier.length or 1)
    counts: Dict[str, int] = {}
    reported: List[Any] = []
    found = False
    for turn, first in enumerate(picked):
        changed = first
        if findings.left_s() < 1.5:
            break
        findings.step(f"configuration {turn}: {written(changed) or 'the defaults'}")
        tried = trier.remembered(changed)
        for attempt in range(RETRIES):
            if tried.how in ("refused", "left") and len(changed) > 1:
                changed = drawing.fewer(
                    changed, defaults, f"{tested.request.seed}:{turn}:{attempt}"
                )
                tried = trier.remembered(changed)
        counts[tried.how] = counts.get(tried.how, 0) + 1
        if tried.failed and tried.signature not in reported:
            reported.append(tried.signature)
            least = shrunk(trier, changed, defaults, tried.signature)
            found = _tell(trier, findings, least, changed, defaults, turn) or found
    if not library:
        _undivided(trier, findings, defaults)
    done = sum(counts.values())
    findings.number("config.tried", float(done), "configurations", **counts)
    parts = [
        f"{counts[how]} {sentence}"
        for how, sentence in (
            ("refused", "refused when built"),
            ("large", "too large"),
            ("left", "not judged"),
        )
        if how in counts
    ]
    if all(how in UNJUDGED for how in counts):
        why = ", ".join(parts) or "no time was left"
        findings.skip(f"none of the {len(picked)} configurations drawn was judged: {why}")
    if not found:
        findings.clean("config.fails", "configurations", what="option")
    also = f" ({', '.join(parts)})" if parts else ""
    cut = "" if done == len(picked) else f" of {len(picked)} for the time"
    findings.summary(
        f"{done}{cut} configurations of {', '.join(sorted(defaults))[:200]} with seed"
        f" {tested.request.seed}{also}"
    )


def _undivided(trier: Trier, findings: Findings, defaults: Options) -> None:
    """Note heads that do not divide the width and are accepted: a missing check costs nothing."""
    for changed in drawing.undivided(defaults):
        if findings.left_s() > 1.5:
            tried = trier.remembered(changed)
            if tried.failed:
                findings.note(
                    f"{written({**defaults, **changed})[:200]} does not divide but is accepted: the"
                    f" model then {tried.sentence[:300]}"
                )
                return


def _tell(
    trier: Trier,
    findings: Findings,
    least: Options,
    drawn: Options,
    defaults: Options,
    turn: int,
) -> bool:
    """Report a configuration that fails; return whether it is a finding. It is a note where it
    breaks with a number that the factory sets itself, or where the library's own configuration
    allows what no published one has.
    """
    tried = trier.remembered(least)
    where = written(least)
    constant = drawing.coupled(least, defaults, trier.tested.factory_constants())
    if constant is not None or trier.library:
        why = (
            f"the factory's own {constant} fits {written({name: defaults[name] for name in least})}"
            if constant is not None
            else "the library accepts it, and no model may be published with it"
        )
        findings.note(f"With {where} the model is accepted and {tried.sentence[:300]}: {why}.")
        return False
    sentence = (
        f"With {where} the model is accepted and {tried.sentence}; configuration {turn} of seed"
        f" {trier.tested.request.seed} was {written(drawn)}."
    )
    sentence += f" To repeat it: {_again(trier.tested)}"
    labels: Dict[str, Any] = {"module": tried.module, "how": tried.how, "configuration": turn}
    if tried.error is not None:
        findings.raised("config.fails", tried.error, sentence, what="option", where=where, **labels)
    else:
        findings.counted(
            "config.fails", 1, "configurations", sentence, what="option", where=where, **labels
        )
    return True
