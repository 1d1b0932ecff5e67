"""`trainprobe completion SHELL`: what makes the tab key know the commands and options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer


def completion_of(app: Callable[[], typer.Typer]) -> Callable[..., None]:
    """Return the command for the application that `app` returns."""

    def completion(
        shell: Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
    ) -> None:
        """Print what makes the tab key complete commands, options, formats, causes and demos.

        \b
        For this shell, or for each one from its start-up file:
          eval "$(trainprobe completion bash)"      # ~/.bashrc
          eval "$(trainprobe completion zsh)"       # ~/.zshrc
          trainprobe completion fish | source       # ~/.config/fish/config.fish
        """  # noqa: D301 - \b keeps the lines of the example apart
        import sys

        from trainprobe.cli.described import commands
        from trainprobe.cli.output import to_a_reader
        from trainprobe.cli.shell_completion import SCRIPTS
        from trainprobe.errors import UsageError

        if shell not in SCRIPTS:
            raise UsageError(
                f"There is no completion for {shell[:20]!r}.", f"There is: {', '.join(SCRIPTS)}."
            )
        with to_a_reader(sys.stdout):
            sys.stdout.write(SCRIPTS[shell](commands(app())))
            sys.stdout.flush()

    return completion
