"""What the checks of masks share, and those that compare values: ignored, padded, padded labels."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Iterator, List, NamedTuple, Set

import torch

from _model_stress.attention import BLOCKED, AttentionPattern
from _model_stress.batches import Batch
from _model_stress.findings import Findings, gap
from _model_stress.mask_inputs import PROMISING, ROWS, MaskBench, MaskInput, takes_of
from _model_stress.module_isolation import View, apart, blamed, given_other, mended, recorded
from _model_stress.tested_model import RunResult, TestedModel
from _shared.child_program import summary_of

SURE = 1e-3  # of the largest value: far beyond what float32 rounds
SHORT = 4  # positions: how much is padded at most
LOCAL = ("Conv", "AvgPool", "MaxPool")  # torch's modules that mix neighbours and know of no mask


class Fault(NamedTuple):
    """How far two runs differ, the names of the modules at fault, and those modules; maybe none."""

    size: float
    names: List[str]
    guilty: List[str]


class Masks:
    """The state of the mask checks of one model. `broken` is true once a fault is reported, so that
    its echoes are not. `local`: convolutions carry values out from under the mask. `heedless`: the
    outputs ignore the mask, and nothing promises that they do not.
    """

    def __init__(self, tested: TestedModel, findings: Findings) -> None:
        self.tested, self.findings = tested, findings
        self.use(MaskBench(tested))
        self.rows = 1 if tested.traits.couples_rows else ROWS
        self.pattern = AttentionPattern({}, built=False)
        self.tried: List[str] = []
        self.answers = 0
        self.broken = self.local = self.heedless = False

    def use(self, bench: MaskBench) -> None:
        self.bench = bench
        self.model = bench.model
        self.length = bench.length
        self.near = bench.near

    @contextlib.contextmanager
    def part(self, name: str, sentence: str) -> Iterator[None]:
        """One check. A model that raises gets a note: a mask that raises misleads nobody."""
        if self.findings.left_s() < 1:
            self.findings.note(f"{name} was not tried: no time was left.")
            return
        self.findings.step(name)
        before = self.answers
        try:
            yield
            if self.answers > before:  # a check that did not apply was not made
                self.tried.append(sentence)
        except Exception as error:  # whatever the user's code raises
            self.findings.note(f"{name}: the model raises {summary_of(error)}")

    def off(self, new: RunResult, old: RunResult, view: View) -> float:
        return max(
            [
                apart(item, old.outputs[name], view)
                for name, item in new.outputs.items()
                if name in old.outputs and name != "loss"
            ]
            or [0.0]
        )

    @functools.cached_property
    def loss_only(self) -> bool:
        """Whether the model returns nothing but a loss. Its modules are compared then."""
        return set(self.bench.run(self.bench.full()).outputs) <= {"loss"}

    def differs(self, new: Batch, old: Batch, view: View) -> Fault:
        """Compare two batches' outputs where they count."""
        worst = self.off(self.bench.run(new), self.bench.run(old), view)
        if not self.loss_only and (
            worst <= self.near or self.only_in_doubles(new, old, view, worst)
        ):
            return Fault(min(worst, self.near), [], [])
        return self.blame(new, old, view, worst)

    def only_in_doubles(self, new: Batch, old: Batch, view: View, worst: float) -> bool:
        """Whether float32 shows no difference. Other suites report problems of types."""
        if not self.tested.traits.doubles or self.bench is self.single or worst < SURE:
            return False
        ran = [self.single.run(item.to(dtype=torch.float32)) for item in (new, old)]
        gone = self.off(ran[0], ran[1], view) < worst / 100
        if gone:
            self.findings.note(
                "In float64 the model ignores its mask, unlike in float32: masks are checked in"
                " float32 only."
            )
        return gone

    @functools.cached_property
    def single(self) -> MaskBench:
        """In float32: in float64 some models overflow where a row sees nothing."""
        found = MaskBench(self.tested, single=True)
        found.port = self.bench.port
        return found

    @functools.cached_property
    def mixers(self) -> Set[str]:
        """The modules that mix rows, which other suites report."""
        view = View(ROWS, self.length, list(range(self.length)), row=1)
        before = recorded(self.model, lambda: self.bench.run(self.bench.alone(1, self.length)))
        found = mended(
            self.model, lambda: self.bench.run(self.bench.full()), before, view, self.near
        )
        if found:
            self.rows = 1
            self.findings.note(
                f"Rows depend on each other (in {next(iter(found)) or type(self.model).__name__}):"
                " masks were tried on single rows."
            )
        return set(found)

    def blame(self, new: Batch, old: Batch, view: View, worst: float) -> Fault:
        before = recorded(self.model, lambda: self.bench.run(old))
        guilty = mended(self.model, lambda: self.bench.run(new), before, view, self.near)
        names = blamed(self.model, list(guilty), self.knowing(), before.modules)
        return Fault(max([worst, *guilty.values()]), names, list(guilty))

    def knowing(self) -> Set[str]:
        """The modules that receive the mask, or something correct that was made of it."""
        every, out = list(range(self.length)), [1, 2, *range(self.length - SHORT + 1, self.length)]
        full = self.bench.masked(self.bench.batch, self.bench.keep([every] * ROWS))
        part = self.bench.masked(
            self.bench.batch, self.bench.keep([[item for item in every if item not in out]] * ROWS)
        )

        def right(mask: Any) -> bool:
            if (
                not mask.is_floating_point()
                or mask.dim() < 3
                or mask.shape[-1] != self.length
                or mask.shape[1] != 1
            ):
                return True
            kept, left_out = mask[..., [item for item in every if item not in out]], mask[..., out]
            faint = bool((kept == 0).all()) and not bool((left_out <= BLOCKED).all())
            return not faint and not bool((kept <= BLOCKED).all())

        return given_other(
            self.model, lambda: self.bench.run(full), lambda: self.bench.run(part), right
        )

    def found(self, name: str, size: float, sentence: str, names: List[str], **labels: Any) -> None:
        """A fault, named by the first module of `names`; the model itself where there are none."""
        more = f", and in {len(names) - 1} more" if len(names) > 1 else ""
        where = names[0] if names else type(self.model).__name__
        labels = {**labels, **({"also": names[1:9]} if more else {})}
        sentence = f"{sentence} (in {where}{more})."
        self.answers += 1
        if not self.findings.differs(
            name, size, sentence, tolerance=self.near, what="module", where=where, **labels
        ):
            self.broken = True

    def held(self, name: str, size: float, **labels: Any) -> None:
        self.answers += 1
        self.findings.differs(name, size, "", tolerance=self.near, **labels)

    def attends(self, module: str) -> bool:
        """Whether this module, or one below it, calculates attention."""
        return any(
            item == module or not module or item.startswith(module + ".")
            for item in self.pattern.modules
        )

    def counts(self, form: str, guilty: List[str]) -> bool:
        """Whether the mask is at fault, and not a convolution or a model that only uses lengths."""
        if guilty and self.mixers.issuperset(guilty):
            return False
        modules = dict(self.model.named_modules())
        local = [
            item
            for item in guilty
            if type(modules[item]).__name__.startswith(LOCAL)
            and type(modules[item]).__module__.startswith("torch.")
        ]
        if local and all(
            any(near == item or not item or near.startswith(item + ".") for near in local)
            for item in guilty
        ):
            if not self.local:
                kind = type(modules[local[0]]).__name__
                self.findings.note(
                    f"Values under the mask reach their neighbours through {local[0]} ({kind}), as"
                    " without a mask."
                )
            self.local = True
            return False
        return form == "at the end" or any(self.attends(item) for item in guilty)

    # ---- the checks

    def ignored(self, port: MaskInput) -> None:
        """Values under the mask must not change outputs: at the end, and in the middle."""
        bench, every = self.bench, list(range(self.length))
        pooled = self.tested.kind != "transformers"
        if (
            pooled
            and not port.acts
            and port.name not in PROMISING
            and (not port.given or self.weighs_loss())
        ):
            self.findings.note(
                f"{port.label} changes nothing in the"
                f" outputs{', only the loss' if port.given else ''}."
            )
            self.heedless = True
            return
        for form, out in (("at the end", every[-SHORT:]), ("in the middle", [2, 3])):
            view = View(
                self.rows, self.length, [item for item in every if item not in out], pooled=pooled
            )
            old = bench.masked(
                bench.batch.take(list(range(self.rows))), bench.keep([view.kept] * self.rows)
            )
            new = bench.filled(
                old, dict.fromkeys(range(self.rows), out), group=bench.group(port.name), pad=False
            )
            fault = self.differs(new, old, view)
            if fault.size <= self.near:
                self.held("mask.ignored", fault.size, form=form)
            elif self.counts(form, fault.guilty):
                sentence = (
                    f"Other values under the mask, {form}, change outputs at positions that count"
                    f" by {fault.size:.2g} of the largest"
                )
                self.found(
                    "mask.ignored",
                    fault.size,
                    f"{sentence}: {port.label} is ignored",
                    fault.names,
                    form=form,
                )
                return

    def weighs_loss(self) -> bool:
        """Whether the mask changes the loss."""
        part = self.bench.masked(
            self.bench.batch, self.bench.keep([list(range(2, self.length - 2))] * ROWS)
        )
        return (
            self.tested.traits.own_loss
            and gap(self.bench.run(part).loss, self.bench.run(self.bench.full()).loss) > 0
        )

    def padding(self, port: MaskInput) -> None:
        """A padded row must give what it gives without padding, alone and in a mixed batch."""
        bench, group = self.bench, self.bench.group(port.name)
        if not self.tested.traits.resizes:
            self.findings.note(
                "Batches of another length fail: padded and unpadded were not compared."
            )
            return
        counts = [self.length, self.length - SHORT, self.length - SHORT + 2]
        pooled = self.tested.kind != "transformers" or bench.pad is not None
        for together in (False, True)[: 1 if self.rows == 1 else 2]:
            rows = list(range(ROWS)) if together else [1]
            keep = [list(range(counts[row])) for row in rows]
            places = {
                place: list(range(counts[row], self.length)) for place, row in enumerate(rows)
            }
            new = bench.masked(
                bench.filled(bench.batch.take(rows), places, group=group, pad=True),
                bench.keep(keep),
            )
            form = "in a batch of other lengths" if together else "with padding behind it"
            for place, row in enumerate(rows):
                fault = self.differs(
                    new,
                    bench.alone(row, counts[row]),
                    View(len(rows), self.length, keep[place], row=place, pooled=pooled),
                )
                if fault.size <= self.near:
                    self.held("mask.padding", fault.size, form=form)
                    continue
                if self.counts("at the end", fault.guilty):
                    sentence = (
                        f"A row of {counts[row]} positions gives other outputs {form} than alone,"
                        f" by {fault.size:.2g} of the largest"
                    )
                    self.found("mask.padding", fault.size, sentence, fault.names, form=form)
                return

    def left(self, port: MaskInput) -> None:
        """Padding in front, where the positions can be passed."""
        bench, count = self.bench, self.length - SHORT
        takes = takes_of(self.tested, self.model)
        if (
            "position_ids" not in takes
            or bench.two_sided
            or not self.tested.traits.resizes
            or not isinstance(bench.batch.data, dict)
        ):
            return
        form, kept = "with padding before it", list(range(SHORT, self.length))
        padded = bench.filled(
            bench.batch.take([1]),
            {0: list(range(count, self.length))},
            group=bench.group(port.name),
            pad=True,
        )
        places = torch.tensor([[0] * SHORT + list(range(count))], device=self.tested.device)
        moved = padded.at([*range(count, self.length), *range(count)])
        new = bench.masked(moved, bench.keep([kept])).replaced({"position_ids": places})
        old = bench.alone(1, count).replaced({"position_ids": places[:, SHORT:]})
        fault = self.differs(new, old, View(1, self.length, kept, row=0, pooled=False))
        if fault.size <= self.near:
            self.held("mask.padding", fault.size, form=form)
        elif self.counts("in the middle", fault.guilty):
            sentence = (
                f"A row of {count} positions, {form} and its positions passed, gives other outputs"
                f" than alone, by {fault.size:.2g} of the largest"
            )
            self.found("mask.padding", fault.size, sentence, fault.names, form=form)

    def loss(self, port: MaskInput) -> None:
        """The loss of a padded row whose padded labels are -100 is that of the row alone."""
        bench, group, count = self.bench, self.bench.group(port.name), self.length - SHORT
        labels = [
            leaf
            for leaf in group
            if bench.is_label(leaf) and not bench.leaves[leaf].is_floating_point()
        ]
        if (
            not labels
            or bench.two_sided
            or self.local
            or not self.tested.traits.own_loss
            or not self.tested.traits.resizes
        ):
            return
        padded = bench.filled(
            bench.batch.take([1]), {0: list(range(count, self.length))}, group=group, pad=True
        )
        item = bench.run(bench.masked(padded, bench.keep([list(range(count))]))).loss
        worst = gap(item, bench.run(bench.alone(1, count)).loss)
        sentence = (
            f"The loss of a row with {SHORT} padded positions, whose labels are -100, differs from"
            f" that of the row alone by {worst:.2g}"
        )
        self.answers += 1
        if not self.findings.held(
            "mask.loss",
            worst,
            self.near,
            "of the loss",
            f"{sentence}: they are counted.",
            what="loss",
            where=labels[0],
        ):
            self.broken = True


def own_dtype(model: Any) -> Any:
    """The floating-point type of the model's weights."""
    return next(
        (item.dtype for item in model.parameters() if item.is_floating_point()), torch.float32
    )


def label_leaves(bench: MaskBench) -> Set[str]:
    """Leaves that only the loss reads."""
    return set() if bench.two_sided else {leaf for leaf in bench.leaves if bench.is_label(leaf)}
