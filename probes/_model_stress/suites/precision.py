"""Narrow types: autocast and whole models in bfloat16 and float16, and float32 against float64.

Thresholds are multiples of the type's unit (torch.finfo(type).eps) and of what a change in the last
digit of the inputs does to the wide calculation.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

import torch

from _model_stress import mixed_precision
from _model_stress.findings import Findings
from _model_stress.module_state import loose
from _model_stress.tested_model import TestedModel, cast
from _shared.child_program import summary_of

BATCH_NORMS = (
    torch.nn.BatchNorm1d,
    torch.nn.BatchNorm2d,
    torch.nn.BatchNorm3d,
    torch.nn.SyncBatchNorm,
)
# what torch.amp.GradScaler comes down to where gradients overflow
SCALES = (2.0**-8, 2.0**-16)
LENGTH = 128  # positions, where the model takes them: short sums lose too little to show
MISSING = (
    "not implemented for",
    "could not create a primitive",
    "not supported",
    "unsupported",
    "could not run",
    "no kernel",
    "does not support",
)


class Mode(NamedTuple):
    """`auto`: autocast with float32 weights; else the whole model and its inputs are cast."""

    label: str
    dtype: Any
    auto: bool


MODES = (
    Mode("autocast float16", torch.float16, auto=True),
    Mode("autocast bfloat16", torch.bfloat16, auto=True),
    Mode("float16", torch.float16, auto=False),
    Mode("bfloat16", torch.bfloat16, auto=False),
)


class Pass(NamedTuple):
    """One pass forward and backward. `gradient` is the first parameter with inf or nan."""

    loss: float
    watch: mixed_precision.Watch
    error: Optional[BaseException]
    backward: bool
    gradient: str


def passed(
    tested: TestedModel, model: Any, batch: Any, mode: Optional[Mode], scale: float = 1.0
) -> Pass:
    """Run `model` once, forward and back from `scale` times the loss; what it raises is in the
    answer.
    """
    device = tested.device
    scope: Any = (
        torch.autocast(device, dtype=mode.dtype)
        if mode is not None and mode.auto
        else contextlib.nullcontext()
    )
    bad: List[str] = []
    hooks = [
        item.register_hook(_gradient_hook(name, bad))
        for name, item in model.named_parameters()
        if item.requires_grad
    ]
    loss, error, backward = math.nan, None, False
    with mixed_precision.watched(model) as watch, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            with scope:
                ran = tested.run(model, batch, seed=0, grad=True)
            loss, backward = float(ran.loss.detach()), True
            if ran.loss.requires_grad:
                (ran.loss * scale).backward()
        except Exception as caught:  # what the user's code raises is the finding
            error = caught
    for hook in hooks:
        hook.remove()
    if (
        mode is not None
        and mode.auto
        and any("isabling autocast" in str(item.message) for item in warned)
    ):
        error = NotImplementedError("autocast to this type is not supported here")
    return Pass(loss, watch, error, backward, bad[0] if bad else "")


def _measure(norm: Any, args: Any) -> None:
    """Give a norm the mean and the variance of what it is about to norm, for each channel."""
    inputs = args[0].detach()
    axes = [axis for axis in range(inputs.dim()) if axis != 1]
    norm.running_mean.copy_(inputs.mean(axes))
    norm.running_var.copy_(inputs.var(axes, unbiased=False))


def unreached(
    tested: TestedModel,
    make: Callable[..., Any],
    length: Optional[int],
    mode: Mode,
    error: BaseException,
) -> str:
    """The first unregistered tensor whose cast by hand avoids `error`; "" without one."""
    model = make(lively=False, dtype=mode.dtype)
    mine, other = loose(model), loose(tested.build(tested.request.seed + 1))
    drawn = [
        name
        for name, cell in mine.items()
        if cell.value.requires_grad
        or name not in other
        or not _alike(cell.value, other[name].value)
    ]
    for name in drawn:
        mine[name].put(
            mine[name].value.detach().to(mode.dtype).requires_grad_(mine[name].value.requires_grad)
        )
    after = (
        passed(tested, model, tested.batch(2, length, seed=1, model=model), mode).error
        if drawn
        else error
    )
    return drawn[0] if after is None or str(after) != str(error) else ""


def _alike(this: Any, other: Any) -> bool:
    return this.shape == other.shape and bool(
        torch.equal(this.detach(), other.detach().to(this.dtype))
    )


def _gradient_hook(name: str, bad: List[str]) -> Any:
    def findings(gradient: Any) -> None:
        if not bool(torch.isfinite(gradient).all()):
            bad.append(name)

    return findings


def is_missing(error: BaseException) -> bool:
    """Whether the installed torch lacks the operation, which is no fault of the model."""
    text = str(error).lower()
    return isinstance(error, NotImplementedError) or any(item in text for item in MISSING)


def name_of(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


class Precision:
    def __init__(self, tested: TestedModel, findings: Findings) -> None:
        self.tested, self.findings = tested, findings
        self.reported: Set[Tuple[str, str]] = set()
        self.missing: Dict[str, List[str]] = {}
        self.tried: List[str] = []
        self.modules = 0
        self.length: Optional[int] = None
        # of the norms, with and without stirred weights
        self.statistics: Dict[bool, Dict[str, Any]] = {}
        # what the model's own code is called, where no module of it is to blame: its class
        self.root = ""

    # ---- making

    def make(self, *, lively: bool, dtype: Any = None) -> Any:
        model = self.tested.build(self.tested.request.seed, lively=lively)
        self.root = type(model).__name__
        config: Any = getattr(model, "config", None)
        if hasattr(config, "use_cache"):
            config.use_cache = False
        self.settle(model, lively=lively)
        if dtype is not None or any(
            item.dtype in (torch.float16, torch.bfloat16) for item in model.parameters()
        ):
            if dtype in (torch.float16, torch.bfloat16):
                model.to(dtype)  # as a script would do it
            else:
                cast(model, torch.float32)
        return model

    def settle(self, model: Any, *, lively: bool) -> None:
        """Give untrained norms the statistics of the batch that is judged. Without it they norm
        nothing in eval(), and a deep residual network doubles with each block, as no trained one
        does; with those of a few other rows, deep layers of a few pixels hold only outliers.
        """
        norms = {
            name: item
            for name, item in model.named_modules()
            if isinstance(item, BATCH_NORMS)
            and item.running_mean is not None
            and not bool(item.num_batches_tracked)
        }
        if norms and lively not in self.statistics:
            hooks = [item.register_forward_pre_hook(_measure) for item in norms.values()]
            try:
                self.tested.run(model.eval(), self.batch(model))
            except Exception:  # what does not run is told elsewhere
                for item in norms.values():
                    item.reset_running_stats()
            for hook in hooks:
                hook.remove()
            self.statistics[lively] = {
                name: (item.running_mean.clone(), item.running_var.clone())
                for name, item in norms.items()
            }
        for name, item in norms.items():
            mean, variance = self.statistics[lively][name]
            item.running_mean.copy_(mean)
            item.running_var.copy_(variance)

    def batch(self, model: Any) -> Any:
        return self.tested.batch(2, self.length, seed=1, model=model)

    def passed(self, model: Any, mode: Optional[Mode]) -> Pass:
        return passed(self.tested, model, self.batch(model), mode)

    # ---- telling

    def tell(
        self,
        name: str,
        where: str,
        value: float,
        threshold: float,
        unit: str,
        sentence: str,
        *,
        what: str = "module",
        **labels: Any,
    ) -> None:
        where = where or self.root
        if (name, where) not in self.reported and (value > threshold or not math.isfinite(value)):
            self.reported.add((name, where))
            self.findings.held(
                name, value, threshold, unit, sentence, what=what, where=where, **labels
            )

    def broken(self, name: str, where: str, sentence: str, **place: Any) -> None:
        """Report what is not finite."""
        self.tell(name, where, math.inf, 0, "", sentence, **place)

    def title(self, model: Any, name: str) -> str:
        """What a module is called where a sentence needs a name: the model itself by its class."""
        return name or type(model).__name__

    # ---- asking

    def run(self) -> None:
        findings, tested = self.findings, self.tested
        self.length = self._length()
        references = self._references()
        plain = references[False]
        findings.step("casts in float32")
        self._casts()
        for mode in MODES:
            for lively in (False, True):
                if findings.left_s() < 1 or mode.label in self.missing:
                    continue
                findings.step(f"{mode.label}{', stirred weights' if lively else ''}")
                self._whole(mode, references[lively], lively=lively)
        if tested.traits.noisy:
            findings.note("eval() is noisy: modules are not compared one by one.")
        else:
            for dtype in (torch.float16, torch.bfloat16, torch.float32):
                findings.step(f"modules one by one, {name_of(dtype)}")
                self._one_by_one(dtype)
        for sentence, modes in self.missing.items():
            findings.note(f"{sentence} is not tried here: {modes[0]}")
        if not self.reported and not self.tried and not self.modules:
            findings.skip("no narrower type runs here")
        if not self.reported:
            findings.clean("precision.overflow", "modules", what="module")
        tried = ", ".join(self.tried) or "nothing"
        findings.summary(
            f"{tried} against float32 at 2x{self.length or '-'}, {self.modules} modules by"
            f" themselves, loss {plain.loss:.4g}"
        )

    def _length(self) -> Optional[int]:
        traits = self.tested.traits
        own = self.tested.own_length
        if own is None or not traits.resizes or traits.forward_s > 0.5:
            return own
        return max(own, min(LENGTH, traits.max_length or LENGTH)) if traits.forward_s < 0.1 else own

    def _references(self) -> Dict[bool, Pass]:
        self.findings.step("float32")
        found = {lively: self.passed(self.make(lively=lively), None) for lively in (False, True)}
        if found[False].error is not None and self.length is not None:
            # it does not go through at this length, which other suites tell
            self.length = self.tested.own_length
            found = {
                lively: self.passed(self.make(lively=lively), None) for lively in (False, True)
            }
        plain = found[False]
        if plain.error is not None:
            raise plain.error
        if not math.isfinite(plain.loss) or plain.gradient:
            self.findings.skip("the loss or its gradients are not finite in float32 already")
        return found

    def _casts(self) -> None:
        model = self.make(lively=False)
        batches = [self.tested.batch(2, self.length, seed=seed, model=model) for seed in (1, 2)]
        found = mixed_precision.casts_of(
            model,
            [lambda batch=batch: self.tested.run(model, batch, grad=True) for batch in batches],  # type: ignore[misc]
        )
        for name, item in sorted(found.items(), key=lambda pair: not pair[1].fed)[:3]:
            unit = torch.finfo(item.kind).eps
            sentence = (
                f"{self.title(model, name)} casts to {name_of(item.kind)} on its own, although"
                f" everything is float32: it keeps {-math.log10(unit):.0f} digits of 7."
            )
            if item.fed:
                least, kind = torch.finfo(torch.float32).eps, name_of(item.kind)
                self.tell(
                    "precision.tolerance", name, unit, least, "of a value", sentence, type=kind
                )
            else:  # a bias of distances, as some models were trained with it
                self.findings.note(
                    f"{sentence} What it casts depends on no weight and no value of the batch: a"
                    " table of constants.",
                    warn=True,
                )

    def _whole(self, mode: Mode, reference: Pass, *, lively: bool) -> None:
        if reference.error is not None or not math.isfinite(reference.loss) or reference.gradient:
            return
        model = self.make(lively=lively, dtype=None if mode.auto else mode.dtype)
        item = self.passed(model, mode)
        labels = {"mode": mode.label}
        if item.error is not None and is_missing(item.error):
            self.missing.setdefault(mode.label, []).append(f"{summary_of(item.error)}")
            return
        if mode.label not in self.tried:
            self.tried.append(mode.label)
        bad = item.watch.first_bad(reference.watch)
        if bad is not None:
            what = "nan" if bad.nan else "inf"
            sentence = (
                f"{self.title(model, bad.module)} makes {what} in {mode.label} out of finite"
                " inputs, where float32 has none."
            )
            self.broken("precision.overflow", bad.module, sentence, **labels)
            return
        if item.error is not None:
            self._raised(model, mode, item, item.error)
            return
        if not math.isfinite(item.loss):
            sentence = (
                f"The loss is {item.loss} in {mode.label}, and {reference.loss:.4g} in float32."
            )
            self.broken("precision.overflow", "loss", sentence, what="loss", **labels)
        elif item.gradient and not any(
            self._is_scaled(mode, scale, lively=lively) for scale in SCALES
        ):
            sentence = (
                f"The gradient of {item.gradient} is not finite in {mode.label}, although the loss"
                " is, and all are finite in float32."
            )
            place = {"what": "parameter", **labels}
            self.broken("precision.gradient", item.gradient, sentence, **place)
        elif not item.gradient and not self.tested.traits.noisy:
            apart = abs(item.loss - reference.loss) / max(abs(reference.loss), 1e-6)
            labels = {"mode": mode.label, "weights": "stirred" if lively else "as built"}
            self.findings.number("precision.loss", apart, "of the float32 loss", **labels)

    def _is_scaled(self, mode: Mode, scale: float, *, lively: bool) -> bool:
        """Whether all gradients are finite with a smaller loss, as a GradScaler makes it."""
        model = self.make(lively=lively, dtype=None if mode.auto else mode.dtype)
        item = passed(self.tested, model, self.batch(model), mode, scale)
        return item.error is None and not item.gradient

    def _raised(self, model: Any, mode: Mode, item: Pass, error: BaseException) -> None:
        modules = dict(model.named_modules())
        if (
            mode.auto
            and "without overflow" in str(error)
            and self.passed(
                self.make(lively=False, dtype=mode.dtype), mode._replace(auto=False)
            ).error
            is None
        ):
            sentence = (
                f"{summary_of(error)} in {mode.label}; all in {name_of(mode.dtype)} works: two"
                " types meet in one operation."
            )
            self.findings.note(sentence, warn=True)
            self.missing.setdefault(mode.label, []).append("see above")
            return
        left = (
            ""
            if mode.auto or "serialization" not in self.tested.request.suites
            else unreached(self.tested, self.make, self.length, mode, error)
        )
        if left:
            sentence = (
                f"{summary_of(error)} in {mode.label}: a cast of the"
                f" model does not reach {left}, which is registered nowhere."
            )
            self.findings.note(
                f"{sentence} No state dict has it either, which the serialization suite reports.",
                warn=True,
            )
            self.missing.setdefault(mode.label, []).append(f"{left} keeps its own type")
            return
        own = [name for name in item.watch.open if mixed_precision.is_own(modules[name])]
        where = own[-1] if own else ""
        if (
            (not item.backward and "dtype" in str(error))
            or "same type" in str(error)
            or "scalar type" in str(error)
        ):
            where = where if mode.auto else (item.watch.widener(mode.dtype) or where)
        if ("precision.raises", where) in self.reported:
            return
        self.reported.add(("precision.raises", where))
        doing = "backward" if item.backward else "forward"
        sentence = (
            f"{self.title(model, where)} does not run {doing} in {mode.label}: {summary_of(error)}"
        )
        self.findings.raised(
            "precision.raises",
            error,
            sentence,
            what="module",
            where=where or self.root,
            mode=mode.label,
        )

    def _one_by_one(self, dtype: Any) -> None:
        wide_type = torch.float64 if dtype is torch.float32 else None
        if (
            (wide_type is not None and not self.tested.traits.doubles)
            or name_of(dtype) in self.missing
            or self.findings.left_s() < 1
        ):
            return
        narrow, wide = self.make(lively=True, dtype=dtype), self.make(lively=True)
        with torch.no_grad():  # the wide one has the very weights of the narrow one
            for item, other in zip(
                (*wide.parameters(), *wide.buffers()), (*narrow.parameters(), *narrow.buffers())
            ):
                if item.is_floating_point():
                    item.copy_(other)
        if wide_type is not None:
            cast(wide, wide_type)
        model = self.make(lively=True)
        with mixed_precision.taking(model) as taken, contextlib.suppress(Exception):
            self.tested.run(model, self.batch(model), grad=True)
        narrows, wides = dict(narrow.named_modules()), dict(wide.named_modules())
        found: List[Tuple[str, mixed_precision.OwnError]] = []
        for item in taken:
            if self.findings.left_s() < 1:
                self.findings.note(
                    f"Out of time: {len(taken) - taken.index(item)} modules were not tried in"
                    f" {name_of(dtype)}."
                )
                break
            own = mixed_precision.alone(narrows[item.module], wides[item.module], item, dtype)
            if own is None:
                continue
            self.modules += 1
            inside = item.module + "." if item.module else ""
            if any(name.startswith(inside) for name, _ in found):
                continue  # a part of it is told
            if own.overflow and own.grows:
                sentence = (
                    f"{self.title(model, item.module)} makes inf or nan in {name_of(dtype)} at"
                    f" {own.overflow:.3g} times its inputs, but its result"
                )
                self.findings.note(
                    f"{sentence} in float32 grows faster than they do: this is not judged."
                )
            if (own.overflow and not own.grows) or own.error > own.allowed:
                found.append((item.module, own))
        known = {where for _, where in self.reported}
        for name, own in [item for item in found if (item[0] or self.root) not in known][:3]:
            self._tell_own(self.title(model, name), name, own, dtype, wides[name])

    def _tell_own(
        self, title: str, name: str, own: mixed_precision.OwnError, dtype: Any, module: Any
    ) -> None:
        kind = name_of(dtype)
        if own.overflow and not own.grows:
            by = "a norm must bear" if own.norm else "it was given here"
            made = "loses its output" if own.norm else "makes inf or nan"
            sentence = (
                f"{title} {made} in {kind} at {own.overflow:.3g} times the inputs that {by}, where"
                " float32 is well within float16's range."
            )
            self.broken("precision.overflow", name, sentence, mode=kind, times=own.overflow)
            return
        sentence = (
            f"{title} by itself is {own.error:.2g} off in {kind}, given the same inputs and"
            f" weights; its arithmetic should cost {own.allowed:.2g} at most."
        )
        halved = _complex(module) if dtype is not torch.float32 else ""
        if halved:
            sentence = (
                f"{title} is {own.error:.2g} off in {kind}: a cast of the model drops the imaginary"
                f" part of its {halved}; hold it as two real tensors."
            )
        unit = "of the root mean square"
        self.tell("precision.tolerance", name, own.error, own.allowed, unit, sentence, mode=kind)


def _complex(module: Any) -> str:
    """The name of a tensor whose imaginary part Module.to drops; empty where there is none such."""
    return next(
        (
            str(name)
            for name, item in (*module.named_buffers(), *module.named_parameters())
            if item.is_complex()
        ),
        "",
    )


def run(tested: TestedModel, findings: Findings) -> None:
    """Raises what the model raises in float32."""
    Precision(tested, findings).run()
