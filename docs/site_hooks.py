"""What mkdocs does not know by itself: the pages of all causes in the navigation, the two pages
that stand outside docs/, and links to source files, which a site does not carry.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
# Pages of figures hold every word; who searches wants them last, and the causes first.
FIGURES = ("accuracy", "nodes-accuracy", "lint-precision", "isolation", "predictions", "changelog")
OUTSIDE = {"CONTRIBUTING.md": "contributing.md", "SECURITY.md": "report-a-weakness.md"}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
FENCE = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)


def on_config(config: Any) -> Any:
    """Put the pages of the causes behind their index."""
    causes = [f"causes/{path.name}" for path in sorted((ROOT / "docs" / "causes").glob("*.md"))]
    index = causes.pop(causes.index("causes/index.md"))
    config.nav[-1] = {"Causes": [index, *({Path(path).stem: path} for path in causes)]}
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the repository that stand outside docs/."""
    for name, page in OUTSIDE.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:  # noqa: ARG001 - mkdocs passes them by name
    """Turn links out of docs/ into links to pages of the site, or into plain text."""
    uri = page.file.src_uri
    boost = 3 if uri.startswith("causes/") else 0.1 if Path(uri).stem in FIGURES else 1
    page.meta.setdefault("search", {"boost": boost})
    here = next((name for name, made in OUTSIDE.items() if made == uri), f"docs/{uri}")
    parts = FENCE.split(markdown)
    return "".join(
        part if part.startswith("```") else LINK.sub(lambda link: _mended(link, here), part)
        for part in parts
    )


def _mended(link: re.Match[str], here: str) -> str:
    image, text, target, anchor = link[1], link[2], link[3], link[4] or ""
    if image or not target or ":" in target:
        return link[0]
    path = posixpath.normpath(posixpath.join(posixpath.dirname(here), target))
    if path in OUTSIDE:
        path = f"docs/{OUTSIDE[path]}"
    if not path.startswith("docs/") or (ROOT / path).is_dir():
        return text
    start = "docs" if here in OUTSIDE else posixpath.dirname(here)
    return f"[{text}]({posixpath.relpath(path, start)}{anchor})"
