"""Which parameters of a model are one, under which names, and which of them should be."""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch

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
