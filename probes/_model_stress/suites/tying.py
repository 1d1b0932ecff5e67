"""Tied parameters stay tied: built, cast, copied, saved, loaded, wrapped and trained."""

from __future__ import annotations

import contextlib
import copy
import datetime as dt
import importlib
import io
import os
import re
import tempfile
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

import torch

from _model_stress.findings import Findings
from _model_stress.tested_model import TestedModel
from _shared.child_program import summary_of

STEPS = 2
FLAG = re.compile(r"^(tie|tied|tying|share|shared)(_|$)|_(tie|tied|tying)(_|$)|share_.*emb")
OF = re.compile(r"emb|weight|head|tying|^tied?$|vocab|output")


class Tie(NamedTuple):
    """`left` and `anchor` name what is, or for the reason `why` should be, one parameter."""

    anchor: str
    left: str
    why: str = ""


def every(model: Any) -> Dict[str, Any]:
    """All parameters under all their names."""
    return dict(model.named_parameters(remove_duplicate=False))


def place(tensor: Any) -> Tuple[int, int]:
    """Where the numbers of a tensor lie; those of a sharded one, where its part lies."""
    local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    if local.numel() == 0 or local.device.type == "meta":
        return id(tensor), 0
    return local.data_ptr(), local.numel()


def shared(model: Any) -> List[Tie]:
    """What is shared as built: each name with the first, an embedding's where there is one."""
    names: Dict[Tuple[int, int], List[str]] = {}
    for name, item in every(model).items():
        names.setdefault(place(item), []).append(name)
    ties: List[Tie] = []
    modules = dict(model.named_modules(remove_duplicate=False))
    for group in names.values():
        first = next(
            (
                name
                for name in group
                if isinstance(modules.get(name.rpartition(".")[0]), torch.nn.Embedding)
            ),
            group[0],
        )
        ties += [Tie(first, name) for name in group if name != first]
    return ties


def is_one(parameters: Dict[str, Any], tie: Tie) -> bool:
    """Whether both names are one parameter. A name that is gone was merged, not lost."""
    item, other = parameters.get(tie.anchor), parameters.get(tie.left)
    return item is None or other is None or item is other or place(item) == place(other)


def wanted(model: Any, options: Dict[str, Any]) -> Iterator[Tie]:
    """What should be shared and is not, by transformers' lists, a flag, or equal random numbers."""
    parameters = every(model)
    for tie in (*_by_transformers(model), *_by_flag(model, options), *_by_numbers(model)):
        if tie.anchor in parameters and tie.left in parameters and not is_one(parameters, tie):
            yield tie


def _by_transformers(model: Any) -> Iterator[Tie]:
    config = getattr(model, "config", None)
    if not hasattr(model, "get_output_embeddings") or config is None:
        return
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    if not (
        getattr(config, "tie_word_embeddings", False) or getattr(text, "tie_word_embeddings", False)
    ):
        return
    why = "config.tie_word_embeddings is true"
    keys = getattr(model, "_tied_weights_keys", None)
    if hasattr(model, "get_expanded_tied_weights_keys"):
        yield from (
            Tie(source, target, why)
            for target, source in model.get_expanded_tied_weights_keys(all_submodels=True).items()
        )
    if not keys:
        return
    names = {id(item): name for name, item in model.named_modules()}
    own, head = model.get_input_embeddings(), model.get_output_embeddings()
    weights: List[Any] = [getattr(item, "weight", None) for item in (own, head)]
    if (
        all(item is not None for item in weights)
        and weights[0].shape == weights[1].shape
        and id(own) in names
        and id(head) in names
    ):
        yield Tie(f"{names[id(own)]}.weight", f"{names[id(head)]}.weight", why)


def _by_flag(model: Any, options: Dict[str, Any]) -> Iterator[Tie]:
    if hasattr(model, "get_output_embeddings"):
        return  # transformers' models say it themselves
    flag = _flag(model, options)
    pairs = list(_pairs(model))
    parameters = every(model)
    if flag is None or not pairs or any(is_one(parameters, tie) for tie in pairs):
        return
    yield pairs[-1]._replace(why=f"{flag} is true")


def _flag(model: Any, options: Dict[str, Any]) -> Optional[str]:
    """The name of a flag that is true and asks for a tie."""
    holders: List[Tuple[str, Any]] = [("", options)]
    for path, module in model.named_modules():
        for name in ("config", "cfg", "hparams", "args"):
            held = vars(module).get(
                name, getattr(module, name, None) if name == "hparams" else None
            )
            if held is not None and not isinstance(held, torch.nn.Module):
                holders.append(
                    (
                        f"{path}.{name}." if path else f"{name}.",
                        held if hasattr(held, "items") else getattr(held, "__dict__", {}),
                    )
                )
        holders.append((f"{path}." if path else "", vars(module)))
    for prefix, values in holders:
        for name, value in dict(values).items():
            if (
                value is True
                and isinstance(name, str)
                and FLAG.search(name.lower())
                and OF.search(name.lower())
            ):
                return prefix + name
    return None


def _pairs(model: Any) -> Iterator[Tie]:
    """Embeddings and linear heads of one shape."""
    heads = [
        (name, item)
        for name, item in model.named_modules(remove_duplicate=False)
        if isinstance(item, torch.nn.Linear)
    ]
    for name, item in model.named_modules(remove_duplicate=False):
        if isinstance(item, torch.nn.Embedding) and "pos" not in name.rpartition(".")[2].lower():
            for other, head in heads:
                if head.weight.shape == item.weight.shape:
                    yield Tie(f"{name}.weight", f"{other}.weight")


def _by_numbers(model: Any) -> Iterator[Tie]:
    """An embedding and a head with the same random numbers in two places: copied, not tied."""
    parameters = every(model)
    tied = {name for tie in shared(model) for name in (tie.anchor, tie.left)}
    for tie in _pairs(model):
        item, other = parameters[tie.anchor], parameters[tie.left]
        if tie.anchor in tied or tie.left in tied or place(item) == place(other):
            continue
        if bool(torch.equal(item, other)) and float(item.detach().double().std()) > 0:
            yield tie._replace(why="they hold the same random numbers: copied, not tied")


class Tying:
    """One model's ties, and which are reported: each lost tie once for each kind of handling."""

    def __init__(self, tested: TestedModel, findings: Findings) -> None:
        self.tested, self.findings, self.seed = tested, findings, tested.request.seed
        self.tried: List[str] = []
        self.ties: List[Tie] = []
        self.reported: Set[Tuple[str, str]] = set()

    def build(self, more: int = 0) -> Any:
        return self.tested.build(self.seed + more)

    def broken(self, name: str, where: str, partner: str, sentence: str) -> None:
        place = {"what": "parameter", "where": where, "partner": partner}
        self.findings.counted(name, 1, "ties", sentence, **place)

    def check(self, name: str, parameters: Dict[str, Any], doing: str) -> None:
        """Hold each tie against what became of it."""
        lost = [tie for tie in self.ties if not is_one(parameters, tie)]
        for tie in lost:
            if (name, tie.left) in self.reported:
                continue
            self.reported.add((name, tie.left))
            sentence = f"{tie.left} and {tie.anchor} are one parameter as built, and two {doing}."
            self.broken(name, tie.left, tie.anchor, sentence)
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
            self.findings.note(f"{name} was not checked {doing}: {summary_of(error)}")

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
                    "load_state_dict(assign=True) unties parameters, as torch does: tie them again"
                    " afterwards."
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
                    sentence = f"{name} (one with {partner}) does not hold what was saved {doing}."
                    self.broken("tied.after_load", name, partner, sentence)
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
                f"{tie.left} and {tie.anchor} are two parameters as built, although {tie.why}."
            )
            tying.broken("tied.init", tie.left, tie.anchor, sentence)
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
