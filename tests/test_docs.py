"""The documentation cannot lie: generated pages are fresh, links resolve, everything that has a
page has one.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs import generate
from trainprobe import causes
from trainprobe.cli.app import command_names
from trainprobe.cli.exit_codes import MEANINGS
from trainprobe.config import setting_rows, settings_of
from trainprobe.ladder.probes import find
from trainprobe.report.schema import report_schema

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
OUTSIDE = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES = sorted([*OUTSIDE, *DOCS.rglob("*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(
        r"^#+ (.+)$", FENCE.sub("", path.read_text(encoding="utf-8")), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_check_says_what_is_stale_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = {DOCS / "exits.md": "another text", DOCS / "nowhere.md": "x"}
    monkeypatch.setattr(generate, "pages", lambda: made)
    before = (DOCS / "exits.md").read_text(encoding="utf-8")
    assert generate.main(["--check"]) == 1
    said = capsys.readouterr().err
    assert "docs/exits.md is stale" in said
    assert "docs/nowhere.md is missing" in said
    assert (DOCS / "exits.md").read_text(encoding="utf-8") == before


def test_a_page_of_a_cause_that_is_no_more_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {path: path.read_text(encoding="utf-8") for path in (DOCS / "causes").glob("*.md")}
    made = {path: text for path, text in there.items() if path.name != "rank-stuck.md"}
    monkeypatch.setattr(generate, "pages", lambda: made)
    assert generate.stale() == ["docs/causes/rank-stuck.md belongs to no cause"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_resolves(page: Path) -> None:
    for target in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), f"{page.name} links to {target}"
        assert ROOT in path.parents, f"{page.name} links out of the repository: {target}"
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path), f"{page.name} links to {target}"


def test_every_page_can_be_reached_from_the_index() -> None:
    seen: set[Path] = set()
    todo = [DOCS / "index.md"]
    while todo:
        page = todo.pop()
        if page in seen:
            continue
        seen.add(page)
        targets = [
            target.partition("#")[0] for target in LINK.findall(page.read_text(encoding="utf-8"))
        ]
        todo += [
            path
            for target in targets
            if target.endswith(".md") and (path := (page.parent / target).resolve()).exists()
        ]
    assert set(DOCS.rglob("*.md")) <= seen


class _Site(yaml.SafeLoader):
    """Reads mkdocs.yml without mkdocs: a tag of Python's becomes its name."""


_Site.add_multi_constructor("tag:yaml.org,2002:python/", lambda _loader, suffix, _node: suffix)


def pages_in(entries: Any) -> Iterator[str]:
    """The pages of a part of mkdocs' navigation."""
    if isinstance(entries, str):
        yield entries
    for entry in entries.values() if isinstance(entries, dict) else entries:
        if not isinstance(entries, str):
            yield from pages_in(entry)


def test_the_site_leads_to_every_page_and_nowhere_else() -> None:
    site = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), _Site)
    listed = list(pages_in(site["nav"]))
    made_by_the_hooks = {"contributing.md", "report-a-weakness.md"}
    written = {
        path.relative_to(DOCS).as_posix()
        for path in DOCS.rglob("*.md")
        if path.parent.name != "causes" or path.name == "index.md"
    }
    assert len(listed) == len(set(listed))
    assert set(listed) == written | made_by_the_hooks
    # nothing is fetched by who reads it
    assert site["theme"]["font"] is False
    own = [site["theme"]["favicon"], *site["extra"]["polyfills"], *site["extra_css"]]
    assert all((DOCS / path).is_file() for path in own)


def test_every_cause_rung_setting_and_exit_code_is_documented() -> None:
    index = (DOCS / "causes" / "index.md").read_text(encoding="utf-8")
    assert all(
        f"`{cause_id}`" in index
        for cause_id in (*(one.id for one in causes.built()), *(one.id for one in causes.planned()))
    )
    ladder = (DOCS / "ladder.md").read_text(encoding="utf-8")
    for spec in find(()):
        assert f"## {spec.name}\n" in ladder
        assert f"| [`{spec.name}`](#{spec.name}) | {spec.question} |" in ladder
    settings = (DOCS / "settings.md").read_text(encoding="utf-8")
    assert all(f"| `{row.key}` |" in settings for row in setting_rows())
    exits = (DOCS / "exits.md").read_text(encoding="utf-8")
    assert all(f"| {code} | {says} |" in exits for code, says in MEANINGS.items())


def test_the_readme_lists_every_command_that_is_for_people() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = readme.partition("<!-- commands: generated from here -->")[2].partition(
        "<!-- commands: to here -->"
    )[0]
    listed = re.findall(r"^\| \[`trainprobe ([a-z-]+)`\]", table, re.MULTILINE)
    assert listed == [name for name in command_names() if not name.endswith("-here")]


def test_the_settings_file_on_the_page_is_accepted() -> None:
    (example,) = re.findall(
        r"```yaml\n(.*?)```", (DOCS / "settings.md").read_text(encoding="utf-8"), re.DOTALL
    )
    assert all(row.key.rpartition(".")[2] + ":" in example for row in setting_rows())
    assert settings_of(example, "docs/settings.md").nproc == 4


def test_the_published_schema_is_the_one_of_the_types() -> None:
    assert json.loads((DOCS / "report.schema.json").read_text(encoding="utf-8")) == report_schema()


def test_the_header_in_the_protocol_is_the_plugins_own() -> None:
    """The page's example is a file that runs in the tests."""
    (shown,) = re.findall(
        r"```python\n(# /// trainprobe\n.*?)```",
        (DOCS / "probe-protocol.md").read_text(encoding="utf-8"),
        re.DOTALL,
    )
    program = (
        ROOT
        / "tests"
        / "plugins"
        / "acme_trainprobe"
        / "acme_trainprobe"
        / "probes"
        / "acme_licence.py"
    )
    assert program.read_text(encoding="utf-8").startswith(shown)


def test_the_make_lines_of_the_readme_exist() -> None:
    targets = set(
        re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    blocks = "".join(
        re.findall(r"```\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    )
    named = set(re.findall(r"^(?:[A-Z]+=\S+ )?make ([a-z-]+)", blocks, re.MULTILINE))
    assert named
    assert named <= targets


def test_the_generated_pages_are_fresh_where_the_generator_runs_as_a_program() -> None:
    ran = subprocess.run(
        [sys.executable, str(DOCS / "generate.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd="/",
    )
    assert (ran.returncode, ran.stderr) == (0, "")
