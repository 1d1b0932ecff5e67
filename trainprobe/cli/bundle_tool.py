"""`trainprobe bundle-tool`: the tool as one file."""

from __future__ import annotations

from typing import Annotated

import typer


def bundle_tool(
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to write it.")
    ] = "trainprobe.pyz",
) -> int:
    """Write the part of this tool that looks at a node as one file, for nodes that cannot see where
    it is installed.

    A node's own Python runs it, from 3.9 on, and needs nothing else; py-spy is inside, for
    processors such as this machine's.

    \b
    Examples:
      trainprobe bundle-tool -o trainprobe.pyz
      scp trainprobe.pyz node3: && ssh node3 python3 trainprobe.pyz look-here
    """  # noqa: D301 - \b keeps the lines of the example apart
    from trainprobe.nodes.bundle import machine, write_bundle

    made = write_bundle(output)
    typer.echo(
        f"{output}: {len(made.content) / 1e6:.1f} MB, for Python 3.9 or newer, with py-spy for"
        f" {machine()}."
        if not made.lacks
        else f"{output}: {made.lacks}"
    )
    return 0
