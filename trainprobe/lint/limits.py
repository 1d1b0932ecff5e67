"""Limits on the source that is read, and the sentences for source beyond them."""

from __future__ import annotations

import ast
import warnings

LARGEST_BYTES = 4 * 1024 * 1024
LONGEST_LINE = 200_000
DEEPEST = 300
"""Levels of the syntax tree. Real code stays below 60; chains of `elif` and of `+` are what
reaches 200.
"""
MOST_NODES = 2_000_000
MOST_FILES = 20_000
MOST_LINES = 5_000_000


class Unreadable(ValueError):  # noqa: N818 - it says what happened
    """The source cannot be read; the text is a sentence for the user."""


def parsed(text: str, path: str) -> ast.Module:
    """Return the syntax tree of `text`; raises Unreadable with a sentence."""
    if len(text) > LARGEST_BYTES:
        raise Unreadable(
            f"It holds {len(text) / 1e6:.0f} MB; source above {LARGEST_BYTES / 1e6:.0f} MB is not"
            " read."
        )
    longest = max(map(len, text.split("\n")), default=0)
    if longest > LONGEST_LINE:
        raise Unreadable(
            f"A line of {longest:,} characters is no source that a person wrote; lines above"
            f" {LONGEST_LINE:,} are not read."
        )
    try:
        with warnings.catch_warnings():
            # what Python thinks of the user's escapes is not asked here
            warnings.simplefilter("ignore")
            return ast.parse(text, filename=path)
    except SyntaxError as error:
        where = f" in line {error.lineno}" if error.lineno else ""
        raise Unreadable(f"It is not Python of this version{where}: {error.msg}.") from None
    except (RecursionError, MemoryError):
        raise Unreadable("It is nested too deeply to be read.") from None
    except ValueError as error:
        raise Unreadable(f"It is not Python: {error}.") from None
