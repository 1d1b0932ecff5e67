"""Fetch pip's wheel from the index that pip is configured with, for a Python that has neither
pip nor ensurepip.
"""

from __future__ import annotations

import configparser
import hashlib
import html.parser
import os
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

PYPI = "https://pypi.org/simple"
CONFIGURATIONS = ("/etc/pip.conf", "~/.pip/pip.conf", "~/.config/pip/pip.conf")


class Links(html.parser.HTMLParser):
    """The `href`s of a page of an index."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found += [
            value for name, value in attributes if tag == "a" and name == "href" and value
        ]


def configured() -> dict[str, str]:
    """The `global` settings of pip from its files, later ones first to count, then from the
    environment.
    """
    parser = configparser.RawConfigParser()
    files = [os.path.expanduser(path) for path in CONFIGURATIONS]
    parser.read([*files, os.environ.get("PIP_CONFIG_FILE", os.devnull)], encoding="utf-8")
    settings = dict(parser["global"]) if parser.has_section("global") else {}
    settings.update(
        {
            name[4:].lower().replace("_", "-"): value
            for name, value in os.environ.items()
            if name.startswith("PIP_")
        }
    )
    return settings


def read(address: str, certificates: str | None) -> bytes:
    context = (
        ssl.create_default_context(cafile=certificates) if address.startswith("https:") else None
    )
    with urllib.request.urlopen(address, timeout=30, context=context) as answer:
        return bytes(answer.read())


def places(settings: dict[str, str], project: str = "pip") -> list[str]:
    """Pages that may list the project's files: of each index, and each find-links page or folder,
    as addresses that end in a slash.
    """
    indexes = [settings.get("index-url", PYPI), *settings.get("extra-index-url", "").split()]
    pages = [f"{index.rstrip('/')}/{project}/" for index in indexes]
    folders = settings.get("find-links", "").split()
    return pages + [
        place if "://" in place else Path(place).resolve().as_uri() + "/" for place in folders
    ]


def listed(page: str, certificates: str | None) -> list[str]:
    """The files that a page lists, as absolute addresses; a local folder may have an index.html
    or just files.
    """
    local = (
        Path(urllib.request.url2pathname(urllib.parse.urlsplit(page).path))
        if page.startswith("file:")
        else None
    )
    if local and local.is_dir():
        if not (local / "index.html").exists():
            return [path.as_uri() for path in local.iterdir()]
        page = (local / "index.html").as_uri()
    links = Links()
    links.feed(read(page, certificates).decode("utf-8", "replace"))
    return [urllib.parse.urljoin(page, link) for link in links.found]


def fetch(requirement: str, folder: Path) -> Path:
    """Download the wheel of `requirement` (pip==VERSION) into `folder`; ends the program with
    one sentence where it is not to be had.
    """
    wanted = f"pip-{requirement.split('==')[1].split(maxsplit=1)[0]}-py3-none-any.whl"
    settings = configured()
    certificates = settings.get("cert")
    problems = []
    for page in places(settings):
        try:
            for address in listed(page, certificates):
                parts = urllib.parse.urlsplit(address)
                if parts.path.rsplit("/", 1)[-1] != wanted:
                    continue
                content = read(parts._replace(fragment="").geturl(), certificates)
                if (
                    parts.fragment.startswith("sha256=")
                    and hashlib.sha256(content).hexdigest() != parts.fragment[7:]
                ):
                    sys.exit(
                        f"environment: {wanted} from {parts.hostname} is not what its index says"
                        " (sha256 differs)."
                    )
                wheel = folder / wanted
                wheel.write_bytes(content)
                return wheel
        except (OSError, urllib.error.URLError, ValueError) as error:
            problems.append(f"{urllib.parse.urlsplit(page).hostname or page}: {error}")
    why = "; ".join(problems) or "no index lists it"
    sys.exit(
        f"environment: {wanted} could not be fetched ({why}); set PIP_INDEX_URL, or install"
        " ensurepip (Debian: apt install python3-venv)."
    )
