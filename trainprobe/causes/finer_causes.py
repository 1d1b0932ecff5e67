"""Does a message belong to a more specific cause? A general cause then steps back."""

from __future__ import annotations

from collections.abc import Callable


def finer_cause(
    found: Callable[[str], object], *but: str, refines: str = "", mode: str = ""
) -> str:
    """The id of the first cause whose wording `found` accepts, empty if there is none.

    `but` are ids that do not count; with `refines` only causes that refine this one do, with `mode`
    only those that may be named of such a group (SuspectGroup.mode).
    """
    from trainprobe.causes import built  # the catalogue imports the causes that ask

    return next(
        (
            cause.id
            for cause in built()
            if cause.wording
            and cause.id not in but
            and refines in ("", cause.refines)
            and (not mode or mode in cause.modes)
            and found(cause.wording)
        ),
        "",
    )
