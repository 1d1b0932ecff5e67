"""Forward hooks around every module of a model, for as long as a block lasts."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator

Before = Callable[[str, Any, Any], Any]
After = Callable[[str, Any], Any]


def always(_name: str, _module: Any) -> bool:
    return True


@contextlib.contextmanager
def hooked(
    model: Any, before: Before, after: After, chosen: Callable[[str, Any], bool] = always
) -> Iterator[None]:
    """Call `before(name, args, kwargs)` and `after(name, output)` around each call of a module (""
    is the model). What they return replaces the inputs and the output, unless it is None.
    """
    handles = []
    for name, module in model.named_modules():
        if chosen(name, module):
            handles += [
                module.register_forward_pre_hook(_entering(name, before), with_kwargs=True),
                module.register_forward_hook(_leaving(name, after)),
            ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _entering(name: str, before: Before) -> Any:
    return lambda _module, args, kwargs: before(name, args, kwargs)


def _leaving(name: str, after: After) -> Any:
    return lambda _module, _args, output: after(name, output)
