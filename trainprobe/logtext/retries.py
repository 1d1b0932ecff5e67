"""Lines of who could not do something, and tries again or does something else in its place: nothing
has failed so far.
"""

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

# `datasets` takes its cache, a loader another backend, a launcher its default.
_COPES = re.compile(
    r"(?i)\bfall(?:s|ing)? ?back (?:to|on)\b|\bfell back (?:to|on)\b|\bdefaulting to\b"
    r"|\b(?:using|use|uses) [^\n]{1,160}? (?:instead|since|because)\b"
    r"|\binstead,? (?:using|we use)\b"
)
_RAISED = re.compile(r"(?:Error|Exception)\b: ")


def copes(line: str) -> bool:
    """Whether a line says what is done in the place of what did not succeed; no exception does."""
    return _COPES.search(line[:READ]) is not None and _RAISED.search(line[:READ]) is None


def tries_again(line: str) -> bool:
    """Whether a line says that what did not succeed is tried again."""
    return _TRIES.search(line[:READ]) is not None
