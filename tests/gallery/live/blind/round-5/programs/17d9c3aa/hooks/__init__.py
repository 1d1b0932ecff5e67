from .text import TextHook
from .tracker import TrackerHook
REGISTRY = {c.__name__: c for c in (TextHook, TrackerHook)}


def build(cfg):
    cfg = dict(cfg)
    return REGISTRY[cfg.pop("type")](**cfg)
