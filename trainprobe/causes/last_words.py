"""What ranks printed last: of a rank that never came, its last line says what it had begun."""

from __future__ import annotations

import re

from trainprobe.causes.scene import Scene
from trainprobe.facts import Output


def last_word(scene: Scene, pattern: str, within: int = 1) -> tuple[Output, str] | None:
    """The output of a suspect in whose last `within` lines the pattern is found, with that line."""
    wanted = re.compile(pattern)
    for output in scene.facts.of(Output, cell=scene.cell):
        if output.rank is None or output.rank in scene.suspects:
            lines = [line for line in output.tail.splitlines() if line.strip()][-within:]
            found = next((line for line in reversed(lines) if wanted.search(line)), None)
            if found is not None:
                return output, found.strip()
    return None
