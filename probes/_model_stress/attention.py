"""Where a model attends, and whether it is meant to look back only."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set

import torch
from torch.overrides import TorchFunctionMode

from _model_stress.module_hooks import hooked

CLASSES = ("ForCausalLM",)
BLOCKED = -1e4  # an additive mask this far down leaves out
FLAGS = ("is_causal", "causal")


class AttentionPattern(NamedTuple):
    """`modules`: those whose own code attends over positions x positions; the value says whether
    (almost) only back. `built`: a triangle of that size was made. `pattern` is what all of them see
    (queries x keys); None where they differ.
    """

    modules: Dict[str, bool]
    built: bool
    pattern: Any = None


class _Watch(TorchFunctionMode):  # type: ignore[misc, unused-ignore]
    """Sees softmax and attention as they are called, and triangles as they are made."""

    def __init__(self, length: int) -> None:
        super().__init__()
        # one more where the model puts a token before all others
        self.lengths = (length, length + 1)
        self.stack: List[str] = [""]
        self.modules: Dict[str, bool] = {}
        self.triangles: Set[str] = set()
        self.patterns: List[Any] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        output = func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        allowed: Any = None
        if name == "softmax" and isinstance(output, torch.Tensor) and self._square(output):
            allowed = output.detach() > 1e-9
        elif (
            name == "scaled_dot_product_attention"
            and args
            and self._square_of(args[0], args[1] if len(args) > 1 else kwargs.get("key"))
        ):
            mask = args[3] if len(args) > 3 else kwargs.get("attn_mask")
            allowed = self._allowed(
                args[0].shape[-2], mask, kwargs.get("is_causal", False), blocks=False
            )
        elif (
            name == "multi_head_attention_forward"
            and args[0].shape[0] == args[1].shape[0] in self.lengths
        ):
            allowed = self._allowed(
                args[0].shape[0],
                kwargs.get("attn_mask"),
                kwargs.get("is_causal", False),
                blocks=True,
            )
        elif name in ("tril", "triu") and isinstance(output, torch.Tensor) and self._square(output):
            self.triangles.add(name)
        if allowed is not None:
            wide = allowed.reshape(-1, *allowed.shape[-2:]).any(0).cpu()
            if not any(torch.equal(wide, item) for item in self.patterns):
                self.patterns.append(wide)
            self.modules[self.stack[-1]] = self.modules.get(self.stack[-1], True) and looks_back(
                wide
            )
        return output

    def _square(self, tensor: Any) -> bool:
        return bool(
            tensor.dim() >= 2
            and tensor.shape[-1] == tensor.shape[-2]
            and tensor.shape[-1] in self.lengths
        )

    def _square_of(self, query: Any, key: Any) -> bool:
        return bool(
            key is not None and query.shape[-2] == key.shape[-2] and key.shape[-2] in self.lengths
        )

    def _allowed(self, length: int, mask: Any, is_causal: bool, *, blocks: bool) -> Any:
        if is_causal:
            return torch.ones(length, length).tril().bool()
        if mask is None or mask.shape[-2:] != (length, length):
            return torch.ones(length, length).bool()
        if mask.dtype == torch.bool:
            return ~mask if blocks else mask
        return mask > BLOCKED


def looks_back(allowed: Any) -> bool:
    """Whether a matrix of what each position sees (queries x keys) is (almost) lower triangular."""
    count = allowed.shape[-1]
    above = float(allowed.triu(1).sum()) / max(1, count * (count - 1) // 2)
    below = float(allowed.tril(-1).sum()) / max(1, count * (count - 1) // 2)
    return bool(above < 0.5 * below)


def attended(model: Any, run: Callable[[], Any], length: int) -> AttentionPattern:
    """Run once and say where attention over `length` positions was calculated."""
    watch = _Watch(length)

    def enter(name: str, _args: Any, _kwargs: Any) -> None:
        watch.stack.append(name)

    def leave(_name: str, _output: Any) -> None:
        watch.stack.pop()

    with hooked(model, enter, leave), watch:
        run()
    return AttentionPattern(
        dict(watch.modules),
        len(watch.triangles) == 1,
        watch.patterns[0] if len(watch.patterns) == 1 else None,
    )


def meant_to_look_back(
    model: Any, pattern: AttentionPattern, mixing: Set[str], leaking: Set[str], length: int
) -> str:
    """The clause that says why the model must not look ahead; "" where nothing says so."""
    modules = dict(model.named_modules())
    attending = {
        name: any(item == name or item.startswith(name + ".") for item in pattern.modules)
        for name in mixing
    }
    counted = [name for name in mixing if attending[name]] or list(mixing)
    denied = any(
        getattr(module, flag, None) is False for module in modules.values() for flag in FLAGS
    )
    back = [
        name
        for name in counted
        if name not in leaking or _says_back(modules[name]) or _saw_back(name, pattern)
    ]
    if not counted:
        return ""
    if type(model).__name__.endswith(CLASSES) and not denied:
        return f"{type(model).__name__} predicts the next token"
    if any(attending.values()):
        if 2 * len(back) >= len(counted):
            return f"{len(back)} of its {len(counted)} attention layers are masked to look back"
        if pattern.built or _has_triangle(modules, length):
            return "it makes a triangular mask"
    elif 2 * len(back) > len(counted):
        return f"{len(back)} of the {len(counted)} modules that mix positions look back only"
    return ""


def _saw_back(name: str, pattern: AttentionPattern) -> bool:
    return any(
        back
        for item, back in pattern.modules.items()
        if item == name or item.startswith(name + ".")
    )


def _says_back(module: Any) -> bool:
    return any(getattr(module, flag, None) is True for flag in FLAGS)


def _has_triangle(modules: Dict[str, Any], length: int) -> bool:
    for module in modules.values():
        for item in module.buffers(recurse=False):
            if item.dim() >= 2 and item.shape[-1] == item.shape[-2] >= length:
                part = item.reshape(-1, *item.shape[-2:])[0]
                plain = part != part[-1, 0]  # what stands above where what stands below is usual
                if bool(part[-1, 0] != part[0, -1]) and bool((plain == plain.triu(1)).all()):
                    return True
    return False


def square_givers(inputs: Dict[str, Dict[str, Any]], length: int) -> Set[str]:
    """Modules that may be at fault for looking ahead: given no square mask, or a right one."""
    return {
        name
        for name, tensors in inputs.items()
        if all(
            _right(item)
            for item in tensors.values()
            if item.dim() >= 2 and item.shape[-2:] == (length, length)
        )
    }


def _right(mask: Any) -> Optional[bool]:
    """Whether a square mask blocks everything ahead."""
    if mask.is_floating_point():
        blocked = mask < BLOCKED
    else:
        blocked = (
            mask.bool()
            if bool(mask[..., 0, -1].bool().all()) and not bool(mask[..., -1, 0].bool().any())
            else ~mask.bool()
        )
    ahead = torch.ones(mask.shape[-2:], dtype=torch.bool, device=mask.device).triu(1)
    return bool(blocked[..., ahead].all())
