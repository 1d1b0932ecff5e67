"""The browser of this machine, for a page that was just written."""

from __future__ import annotations

import os
from urllib.request import pathname2url


def open_page(path: str) -> bool:
    """Show the file in the user's browser; False where there is none."""
    import webbrowser

    try:
        return webbrowser.open(f"file://{pathname2url(os.path.abspath(path))}")
    except (webbrowser.Error, OSError):
        return False
