"""Tied parameters stay tied: built, cast, copied, saved, loaded, wrapped and trained."""

from __future__ import annotations

import contextlib
import copy
import datetime as dt
import importlib
import io
import os
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Set, Tuple

import torch

from _model_stress.findings import Findings
from _model_stress.parameter_ties import Tie, every, is_one, shared, wanted
from _model_stress.tested_model import TestedModel
from _shared.child_program import summary_of

STEPS = 2


class Tying:
    """One model's ties, and which are reported: each lost tie once for each kind of handling."""

    def __init__(self, tested: TestedModel, findings: Findings) -> None:
        self.tested, self.findings, self.seed = tested, findings, tested.request.seed
        self.tried: List[str] = []
        self.ties: List[Tie] = []
        self.reported: Set[Tuple[str, str]] = set()

    def build(self, more: int = 0) -> Any:
        return self.tested.build(self.seed + more)

    def check(self, name: str, parameters: Dict[str, Any], doing: str) -> None:
        """Hold each tie against what became of it."""
        lost = [tie for tie in self.ties if not is_one(parameters, tie)]
        for tie in lost:
            if (name, tie.left) in self.reported:
                continue
            self.reported.add((name, tie.left))
            sentence = (
                f"{tie.left} and {tie.anchor} are one parameter as the model is built, and two"
                f" {doing}"
            )
            self.findings.counted(
                name,
                1,
                "ties",
                f"{sentence}.",
                what="parameter",
                where=tie.left,
                partner=tie.anchor,
            )
        if not lost:
            self.findings.clean(name, "ties", after=doing)
        self.tried.append(doing)

    @contextlib.contextmanager
    def part(self, name: str, doing: str) -> Iterator[None]:
        """One handling of the model. What raises is another suite's business."""
        if self.findings.left_s() < 1:
            self.findings.note(f"{name} was not tried {doing}: no time was left.")
            return
        self.findings.step(f"{name} {doing}")
        try:
            yield
        except Exception as error:  # whatever the user's code raises
            self.findings.note(f"{name} was not asked {doing}: {summary_of(error)}")

    # ---- the handlings

    def handled(self, name: str, doing: str, handle: Callable[[Any], Any]) -> None:
        """Check what `handle` makes of a new model."""
        with self.part(name, doing):
            self.check(name, _plain(every(handle(self.build()))), doing)

    def loaded(self) -> None:
        """A state dict, through a file's bytes, into a model that was drawn anew."""
        doing = "after load_state_dict"
        with self.part("tied.after_load", doing):
            source = self.build(1)
            data = io.BytesIO()
            torch.save(source.state_dict(), data)
            data.seek(0)
            model = self.build(2)
            model.load_state_dict(
                torch.load(data, map_location=self.tested.device, weights_only=False)
            )
            self.check("tied.after_load", every(model), doing)
            self.values(model, source, doing)
        with contextlib.suppress(Exception):
            model = self.build(2)
            model.load_state_dict(self.build(1).state_dict(), assign=True)
            if not all(is_one(every(model), tie) for tie in self.ties):
                self.findings.note(
                    "load_state_dict(assign=True) gives each name a parameter of its own, as torch"
                    " does: tie them again after it."
                )

    def values(self, model: Any, source: Any, doing: str) -> None:
        """A tie that holds must also hold what was saved."""
        now, was = every(model), every(source)
        for tie in self.ties:
            for name, partner in ((tie.left, tie.anchor), (tie.anchor, tie.left)):
                item, other = now.get(name), was.get(name)
                if (
                    item is None
                    or other is None
                    or not is_one(now, tie)
                    or item.shape != other.shape
                    or not is_one(was, tie)
                ):
                    continue
                if not bool(torch.equal(item, other)):
                    sentence = f"{name} (one with {partner}) does not hold what was saved {doing}"
                    self.findings.counted(
                        "tied.after_load",
                        1,
                        "ties",
                        f"{sentence}.",
                        what="parameter",
                        where=name,
                        partner=partner,
                    )
                    break

    def pretrained(self) -> None:
        """save_pretrained and from_pretrained of transformers."""
        doing = "after from_pretrained"
        if self.tested.kind != "transformers":
            return
        with (
            self.part("tied.after_load", doing),
            tempfile.TemporaryDirectory(prefix="ties-", dir=self.findings.folder) as folder,
        ):
            source = self.build(1)
            source.save_pretrained(folder)
            model = (
                type(source).from_pretrained(folder, local_files_only=True).to(self.tested.device)
            )
            self.check("tied.after_load", every(model), doing)
            self.values(model, source, doing)

    def wrapped(self) -> None:
        """DistributedDataParallel and fully_shard in a group of one."""
        with self.part("tied.after_wrap", "in a process group"), _group():
            self.handled(
                "tied.after_wrap",
                "in DistributedDataParallel",
                torch.nn.parallel.DistributedDataParallel,
            )
            fsdp: Any = importlib.import_module("torch.distributed.fsdp")
            if hasattr(fsdp, "fully_shard"):
                mesh = torch.distributed.device_mesh.init_device_mesh(
                    torch.device(self.tested.device).type, (1,)
                )
                self.handled(
                    "tied.after_wrap",
                    "under fully_shard",
                    lambda model: fsdp.fully_shard(model, mesh=mesh) or model,
                )

    def stepped(self) -> None:
        """Forward, backward and AdamW: what is one moves as one."""
        doing = f"after {STEPS} steps of AdamW"
        with self.part("tied.after_step", doing):
            model = self.build().train()
            batch = self.tested.batch(2, model=model)
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
            for step in range(STEPS):
                optimizer.zero_grad()
                self.tested.run(model, batch, seed=step, grad=True).loss.backward()
                optimizer.step()
            self.check("tied.after_step", every(model), doing)


def _plain(parameters: Dict[str, Any]) -> Dict[str, Any]:
    """Names as they were before a wrapper put its own before them."""
    return {
        (
            name[len("module.") :]
            if all(item.startswith("module.") for item in parameters)
            else name
        ): item
        for name, item in parameters.items()
    }


@contextlib.contextmanager
def _group() -> Iterator[None]:
    """A process group of this process alone; it listens on the loopback at most."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist = torch.distributed
    dist.init_process_group(
        "gloo", store=dist.HashStore(), rank=0, world_size=1, timeout=dt.timedelta(seconds=20)
    )
    try:
        yield
    finally:
        dist.destroy_process_group()


def run(tested: TestedModel, findings: Findings) -> None:
    """Find what is one and what should be, and handle the model in every way that may part them."""
    tying = Tying(tested, findings)
    findings.step("build")
    model = tying.build()
    tying.ties = shared(model)
    reported = set()
    for tie in wanted(model, tested.options()):
        if tie.left not in reported:
            reported.add(tie.left)
            sentence = (
                f"{tie.left} and {tie.anchor} are two parameters as the model is built, although"
                f" {tie.why}"
            )
            findings.counted(
                "tied.init",
                1,
                "ties",
                f"{sentence}.",
                what="parameter",
                where=tie.left,
                partner=tie.anchor,
            )
    if not tying.ties:
        if reported:
            return
        findings.skip("no parameter has two names, and nothing says that one should")
    if not reported:
        findings.clean("tied.init", "ties")
    tying.handled("tied.after_copy", "after .to(float64)", lambda item: item.to(torch.float64))
    tying.handled("tied.after_copy", "after .to(bfloat16)", lambda item: item.to(torch.bfloat16))
    tying.handled("tied.after_copy", "after train() and eval()", lambda item: item.train().eval())
    tying.handled("tied.after_copy", "in a deep copy", copy.deepcopy)
    tying.loaded()
    tying.pretrained()
    tying.stepped()
    tying.wrapped()
    names = ", ".join(dict.fromkeys(tie.left for tie in tying.ties[:3]))
    findings.summary(
        f"{len(tying.ties)} shared names ({names}) stay tied: " + ", ".join(tying.tried)
    )
