"""Parameters that are one under several names stay one: as the model is built, cast, copied, saved, loaded, wrapped and trained."""

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

from _stress.look import Look
from _stress.subject import Subject
from _stress.ties import Tie, every, is_one, shared, wanted

STEPS = 2


class Tying:
    """One model's ties, and what has been told of them: a tie is told lost once for each kind of handling."""

    def __init__(self, subject: Subject, look: Look) -> None:
        self.subject, self.look, self.seed = subject, look, subject.asked.seed
        self.tried: List[str] = []
        self.ties: List[Tie] = []
        self.told: Set[Tuple[str, str]] = set()

    def build(self, more: int = 0) -> Any:
        return self.subject.build(self.seed + more)

    def check(self, name: str, parameters: Dict[str, Any], doing: str) -> None:
        """Hold each tie against what became of it."""
        lost = [tie for tie in self.ties if not is_one(parameters, tie)]
        for tie in lost:
            if (name, tie.left) in self.told:
                continue
            self.told.add((name, tie.left))
            says = f"{tie.left} and {tie.anchor} are one parameter as the model is built, and two {doing}"
            self.look.held(name, 1, 0, "ties", f"{says}.", what="parameter", where=tie.left, partner=tie.anchor)
        if not lost:
            self.look.held(name, 0, 0, "ties", "", after=doing)
        self.tried.append(doing)

    @contextlib.contextmanager
    def part(self, name: str, doing: str) -> Iterator[None]:
        """One handling of the model. What raises is another suite's business."""
        if self.look.left_s() < 1:
            self.look.note(f"{name} was not tried {doing}: no time was left.")
            return
        self.look.step(f"{name} {doing}")
        try:
            yield
        except Exception as error:  # whatever the user's code raises
            self.look.note(f"{name} was not asked {doing}: {type(error).__name__}: {str(error)[:200]}")

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
            model.load_state_dict(torch.load(data, map_location=self.subject.device, weights_only=False))
            self.check("tied.after_load", every(model), doing)
            self.values(model, source, doing)
        with contextlib.suppress(Exception):
            model = self.build(2)
            model.load_state_dict(self.build(1).state_dict(), assign=True)
            if not all(is_one(every(model), tie) for tie in self.ties):
                self.look.note("load_state_dict(assign=True) gives each name a parameter of its own, as torch does: tie them again after it.")

    def values(self, model: Any, source: Any, doing: str) -> None:
        """A tie that holds must also hold what was saved, and not what one of its names was drawn with."""
        now, was = every(model), every(source)
        for tie in self.ties:
            for name, partner in ((tie.left, tie.anchor), (tie.anchor, tie.left)):
                one, other = now.get(name), was.get(name)
                if one is None or other is None or not is_one(now, tie) or one.shape != other.shape or not is_one(was, tie):
                    continue
                if not bool(torch.equal(one, other)):
                    says = f"{name} (one with {partner}) does not hold what was saved {doing}"
                    self.look.held("tied.after_load", 1, 0, "ties", f"{says}.", what="parameter", where=name, partner=partner)
                    break

    def pretrained(self) -> None:
        """save_pretrained and from_pretrained of transformers."""
        doing = "after from_pretrained"
        if self.subject.kind != "transformers":
            return
        with self.part("tied.after_load", doing), tempfile.TemporaryDirectory(prefix="ties-", dir=self.look.folder) as folder:
            source = self.build(1)
            source.save_pretrained(folder)
            model = type(source).from_pretrained(folder, local_files_only=True).to(self.subject.device)
            self.check("tied.after_load", every(model), doing)
            self.values(model, source, doing)

    def wrapped(self) -> None:
        """DistributedDataParallel and fully_shard in a group of one."""
        with self.part("tied.after_wrap", "in a process group"), _group():
            self.handled("tied.after_wrap", "in DistributedDataParallel", torch.nn.parallel.DistributedDataParallel)
            fsdp: Any = importlib.import_module("torch.distributed.fsdp")
            if hasattr(fsdp, "fully_shard"):
                mesh = torch.distributed.device_mesh.init_device_mesh(torch.device(self.subject.device).type, (1,))
                self.handled("tied.after_wrap", "under fully_shard", lambda model: fsdp.fully_shard(model, mesh=mesh) or model)

    def stepped(self) -> None:
        """Forward, backward and AdamW: what is one moves as one."""
        doing = f"after {STEPS} steps of AdamW"
        with self.part("tied.after_step", doing):
            model = self.build().train()
            batch = self.subject.batch(2, model=model)
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
            for step in range(STEPS):
                optimizer.zero_grad()
                self.subject.run(model, batch, seed=step, grad=True).loss.backward()
                optimizer.step()
            self.check("tied.after_step", every(model), doing)


def _plain(parameters: Dict[str, Any]) -> Dict[str, Any]:
    """Names as they were before a wrapper put its own before them."""
    return {name[len("module.") :] if all(one.startswith("module.") for one in parameters) else name: one for name, one in parameters.items()}


@contextlib.contextmanager
def _group() -> Iterator[None]:
    """A process group of this process alone; it listens on the loopback at most."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist = torch.distributed
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1, timeout=dt.timedelta(seconds=20))
    try:
        yield
    finally:
        dist.destroy_process_group()


def run(subject: Subject, look: Look) -> None:
    """Find what is one and what should be, and handle the model in every way that may part them."""
    tying = Tying(subject, look)
    look.step("build")
    model = tying.build()
    tying.ties = shared(model)
    told = set()
    for tie in wanted(model, subject.options()):
        if tie.left not in told:
            told.add(tie.left)
            says = f"{tie.left} and {tie.anchor} are two parameters as the model is built, although {tie.why}"
            look.held("tied.init", 1, 0, "ties", f"{says}.", what="parameter", where=tie.left, partner=tie.anchor)
    if not tying.ties:
        if told:
            return
        look.skip("no parameter has two names, and nothing says that one should")
    if not told:
        look.held("tied.init", 0, 0, "ties", "")
    tying.handled("tied.after_copy", "after .to(float64)", lambda one: one.to(torch.float64))
    tying.handled("tied.after_copy", "after .to(bfloat16)", lambda one: one.to(torch.bfloat16))
    tying.handled("tied.after_copy", "after train() and eval()", lambda one: one.train().eval())
    tying.handled("tied.after_copy", "in a deep copy", copy.deepcopy)
    tying.loaded()
    tying.pretrained()
    tying.stepped()
    tying.wrapped()
    names = ", ".join(dict.fromkeys(tie.left for tie in tying.ties[:3]))
    look.summary(f"{len(tying.ties)} shared names ({names}) stay tied: " + ", ".join(tying.tried))
