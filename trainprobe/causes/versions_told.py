"""The two packages of a version conflict, as far as what was said names them."""

from __future__ import annotations

from trainprobe.causes.scene import Scene
from trainprobe.causes.statements import text_of
from trainprobe.logtext.version_pairs import VersionPair, version_pair

EVENTS = ("library-conflict", "abi-mismatch", "driver-too-old", "driver-mismatch")


def versions_told(scene: Scene) -> VersionPair | None:
    """Out of the suspects' first exception, else out of lines of logs that speak of versions."""
    origin = scene.origin
    files = [frame.file for frame in reversed(origin.frames)] if origin is not None else []
    texts = [text_of(origin)] if origin is not None else []
    texts += [event.line for event in scene.events(*EVENTS)]
    return next((pair for text in texts if (pair := version_pair(text, files))), None)


def pair_says(scene: Scene, otherwise: str) -> str:
    """`tokenizers 0.20.1 does not fit transformers`; `otherwise` where no pair is named."""
    pair = versions_told(scene)
    return pair.says if pair is not None else otherwise
