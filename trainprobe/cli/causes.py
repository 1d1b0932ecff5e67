"""`trainprobe causes [ID]`: the catalogue, or one page of it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def causes(
    cause_id: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]", help="The cause to read about, such as rank-stuck.", show_default=False
        ),
    ] = None,
) -> None:
    """Print the catalogue of causes, or the page of one.

    \b
    Examples:
      trainprobe causes
      trainprobe causes rank-stuck
    """  # noqa: D301 - \b keeps the lines of the example apart
    from trainprobe.cli.catalogue_pages import catalogue_text, cause_text
    from trainprobe.cli.output import to_a_reader

    text = catalogue_text() if cause_id is None else cause_text(cause_id)
    with to_a_reader(sys.stdout):
        sys.stdout.write(text)
        sys.stdout.flush()
