"""Lines of who could not do something yet and tries again: nothing has failed so far."""

from __future__ import annotations

import re

READ = 600
# NCCL's socketPollConnect, gloo's pair and HTTP clients say so; a warning of c10d's client is
# printed at each of its tries until its limit, behind which comes an error.
_TRIES = re.compile(
    r"(?i:\bretrying\b(?!\W{0,3}(?:failed|exhausted|gave up))|\bwill (?:re-?try|try again)\b"
    r"|\bwillRetry=1\b)"
    r"|\[c10d\S{0,3}\] The (?:client socket has failed to connect to (?!any)"
    r"|IPv[46] network addresses of \()"
)


def tries_again(line: str) -> bool:
    """Whether a line says that what did not succeed is tried again."""
    return _TRIES.search(line[:READ]) is not None
