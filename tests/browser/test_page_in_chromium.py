"""The page in a real Chromium, from a file and without a network: nothing is asked for, nothing
fails, and it works by keyboard, without a script, and on paper.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.browser.axe import axe_script
from tests.browser.devtools import Browser, browser_program
from tests.unit.report.page.pages import exhibits, judged, large, since
from tests.unit.report.page.test_hostile import BAIT, poisoned, whole
from trainprobe.report.page.document import page_of
from trainprobe.report.page.exhibits import exhibits_of

CASE = "conditional-collective"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = browser_program()
    if program is None:
        pytest.skip("there is no Chromium here")
    made = Browser(program, tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("pages")
    report, records = judged(CASE)
    bad = exhibits_of(report, [poisoned(record, BAIT) for record in records])
    pages = {
        "case": page_of(since("rank-stuck", CASE), exhibits(CASE)),
        "climb": page_of(judged("climb-lock-in-worker")[0], exhibits("climb-lock-in-worker")),
        "logs": page_of(judged("explain-log-restarts")[0], exhibits("explain-log-restarts")),
        "whole": page_of(whole(), exhibits(CASE)),
        "hostile": page_of(poisoned(whole(), BAIT), bad),
        "large": page_of(large(1024)),
    }
    for name, text in pages.items():
        (made / f"{name}.html").write_text(text, encoding="utf-8")
    return made


@pytest.mark.parametrize("name", ["case", "climb", "logs", "whole", "hostile", "large"])
def test_nothing_is_asked_for_and_nothing_fails(browser: Browser, folder: Path, name: str) -> None:
    path = folder / f"{name}.html"
    browser.open(path)
    assert not list(browser.troubles())
    assert [url for url in browser.requests() if url != "data:,"] == [path.as_uri()]
    assert browser.run("document.querySelectorAll('script').length") == browser.run(
        "document.querySelectorAll('script[type]').length + 1"
    )
    assert browser.run("document.documentElement.classList.contains('scripted')")
    assert browser.run(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )


def test_a_command_is_copied_as_it_is_typed(browser: Browser, folder: Path) -> None:
    browser.open(folder / "case.html")
    browser.send(
        "Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"]
    )
    browser.run("document.querySelector('.fixes [data-copy]').click()")
    browser.until(
        lambda: browser.run("document.querySelector('.fixes [data-copy]').textContent") == "Copied"
    )
    verify = judged(CASE)[0].causes[0].fixes[-1].verify
    browser.run("window.focus()")
    assert browser.run("navigator.clipboard.readText()") == verify
    assert browser.run("document.querySelector('#spoken').textContent") == "Copied"


def test_stacks_and_evidence_are_searched(browser: Browser, folder: Path) -> None:
    browser.open(folder / "case.html")
    browser.run("document.querySelector('#stack-search').focus()")
    browser.type("broadcast")
    browser.until(lambda: browser.run("document.querySelector('#stack-found').textContent"))
    assert browser.run("document.querySelectorAll('.tree .hit').length") == 1
    assert browser.run("document.querySelectorAll('.tree .dim').length") == 1
    assert browser.run("document.querySelector('#icicle .hit').textContent").endswith("broadcast")
    assert browser.run("document.querySelectorAll('#icicle .dim').length") == 3
    browser.run("document.querySelector('#evidence-search').focus()")
    browser.type("journal rank2")
    browser.until(lambda: browser.run("document.querySelector('#evidence-found').textContent"))
    shown = "[...document.querySelectorAll('.record')].filter((one) => !one.hidden).length"
    assert 0 < browser.run(shown) < 8


def test_the_stacks_are_drawn_as_wide_as_their_ranks(browser: Browser, folder: Path) -> None:
    browser.open(folder / "case.html")
    listed = browser.run("document.querySelectorAll('#stack-tree .frame').length")
    assert listed == browser.run("document.querySelectorAll('#icicle [role=treeitem]').length")
    widths = """[...document.querySelectorAll('#icicle .branch')].map((one) =>
        [one.querySelector('.set').textContent, one.getBoundingClientRect().width])"""
    drawn = dict(browser.run(widths))
    assert 1.9 < drawn["0-1"] / drawn["2"] < 2.1
    assert 0.98 < drawn["0-2"] / (drawn["0-1"] + drawn["2"]) < 1.02
    shown = "document.querySelector('#stack-tree').checkVisibility()"
    assert not browser.run(shown)
    browser.run("document.querySelector('#stack-view').click()")
    assert browser.run(shown)
    assert not browser.run("document.querySelector('#icicle').checkVisibility()")


def test_a_rank_of_a_thousand_is_wide_enough_to_be_hit(browser: Browser, folder: Path) -> None:
    browser.open(folder / "large.html")
    guilty = "document.querySelector('#icicle .guilty').getBoundingClientRect().width"
    assert browser.run(guilty) >= 7


def test_the_drawn_stacks_are_walked_by_keyboard(browser: Browser, folder: Path) -> None:
    browser.open(folder / "case.html")
    at = "document.activeElement.getAttribute('aria-label')"
    browser.run("document.querySelector('#icicle [tabindex=\"0\"]').focus()")
    assert browser.run(at).startswith("Ranks 2, 1 of 3: ")
    browser.press("ArrowDown")
    assert "publish_metrics" in browser.run(at)
    assert browser.run("document.querySelector('#icicle-told').textContent") == browser.run(at)
    browser.press("ArrowRight")
    assert browser.run(at).startswith("Ranks 0-1, 2 of 3: ")
    branches = (
        "[...document.querySelectorAll('#icicle .branch')].filter((one) => !one.hidden).length"
    )
    browser.press("Enter")
    assert browser.run(branches) == 2
    browser.press("ArrowLeft")
    assert browser.run(at).startswith("Ranks 0-1, 2 of 3: ")
    browser.press("Escape")
    assert browser.run(branches) == 3
    browser.press("Home")
    assert browser.run("document.activeElement.getAttribute('aria-level')") == "1"
    assert browser.run("document.querySelectorAll('#icicle [tabindex=\"0\"]').length") == 1


def test_a_reason_leads_to_its_record(browser: Browser, folder: Path) -> None:
    browser.open(folder / "case.html")
    name = browser.run("document.querySelector('.reasons a').textContent")
    browser.run("document.querySelector('.reasons a').click()")
    browser.until(
        lambda: browser.run(f"document.querySelector('[data-record={name}] pre') !== null")
    )
    assert browser.run(f"document.querySelector('[data-record={name}]').open")
    assert browser.run("document.activeElement.tagName") == "SUMMARY"


def test_the_theme_is_the_system_s_until_it_is_chosen(browser: Browser, folder: Path) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    browser.open(folder / "case.html")
    browser.run("localStorage.clear()")
    for theme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": theme}]
        browser.send("Emulation.setEmulatedMedia", features=features)
        browser.open(folder / "case.html")
        dark = browser.run(paper) == "rgb(14, 18, 23)"
        assert dark is (theme == "dark")
    browser.run("document.querySelector('#theme').click()")
    assert browser.run("document.querySelector('#theme').textContent") == "Theme: light"
    assert browser.run(paper) != "rgb(14, 18, 23)"
    browser.open(folder / "case.html")
    assert browser.run("document.querySelector('#theme').textContent") == "Theme: light"
    browser.run("localStorage.clear()")
    browser.send("Emulation.setEmulatedMedia", features=[])


def test_everything_is_reached_by_keyboard(browser: Browser, folder: Path) -> None:
    browser.open(folder / "case.html")
    browser.run("document.activeElement.blur()")
    where = """(() => {
        const at = document.activeElement, box = at.getBoundingClientRect();
        const style = getComputedStyle(at);
        return [at.tagName, at.id || at.className || at.textContent.slice(0, 20),
                style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 && box.width > 0];
    })()"""
    stops: list[tuple[str, str]] = []
    for _ in range(160):
        browser.press("Tab")
        tag, name, visible = browser.run(where)
        if tag == "BODY":
            break
        assert visible, (tag, name)
        stops.append((tag, name))
    assert stops[0] == ("A", "skip")
    assert stops[1] == ("BUTTON", "theme")
    names = [name for _, name in stops]
    for wanted in ("stack-search", "evidence-search"):
        assert wanted in names
    assert len([tag for tag, _ in stops if tag == "I"]) == 1
    assert len([tag for tag, _ in stops if tag == "SUMMARY"]) == browser.run(
        "[...document.querySelectorAll('summary')].filter((one) => one.offsetParent).length"
    )
    assert stops.index(("I", "w q")) < names.index("stack-search")


def test_arrows_move_in_the_grid_and_say_where_the_rank_stands(
    browser: Browser, folder: Path
) -> None:
    browser.open(folder / "large.html")
    told = "document.querySelector('#told').textContent"
    browser.run("document.querySelector('#grid i[tabindex=\"0\"]').focus()")
    assert browser.run(told).startswith("Rank 77 on node0009, pid 40077: waiting for 61.2 s at")
    browser.press("ArrowLeft")
    assert browser.run(told).startswith("Rank 76 on node0009")
    assert browser.run("document.activeElement.getAttribute('aria-label')").startswith("Rank 76 ")
    browser.press("ArrowDown")
    assert not browser.run(told).startswith("Rank 76 ")
    browser.press("ArrowUp")
    assert browser.run(told).startswith("Rank 76 ")
    browser.press("End")
    assert browser.run(told).startswith("Rank 1023 on node0127")
    browser.press("Home")
    assert browser.run(told).startswith("Rank 0 on node0000")
    assert browser.run("document.querySelectorAll('#grid [tabindex=\"0\"]').length") == 1


def test_the_answer_is_there_without_a_script(browser: Browser, folder: Path) -> None:
    browser.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(folder / "case.html")
        said = browser.run("document.querySelector('#answer').innerText")
        report = judged(CASE)[0]
        assert "HUNG for 11 s" in said
        assert report.causes[0].id in said
        assert report.causes[0].fixes[0].title in said
        assert "if self.rank == self.metrics_rank:" in said.replace("\xa0", " ")
        assert "Copy" not in said
        assert browser.run("document.querySelector('#stack-tree').checkVisibility()")
        assert not browser.run("document.querySelector('#stack-icicle').checkVisibility()")
        hidden = "getComputedStyle(document.querySelector('#theme')).display"
        assert browser.run(hidden) == "none"
    finally:
        browser.send("Emulation.setScriptExecutionDisabled", value=False)


def test_it_prints(browser: Browser, folder: Path) -> None:
    browser.open(folder / "case.html")
    printed = browser.send("Page.printToPDF", printBackground=True)
    content = base64.b64decode(printed["data"])
    assert content.startswith(b"%PDF")
    assert 1 <= content.count(b"/Type /Page\n") <= 8
    browser.send("Emulation.setEmulatedMedia", media="print")
    assert browser.run("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert browser.run("getComputedStyle(document.querySelector('.copy')).display") == "none"
    assert (
        browser.run("getComputedStyle(document.querySelector('#stack-icicle')).display") == "none"
    )
    browser.send("Emulation.setEmulatedMedia", media="")


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_sticks_out_of_a_narrow_window(browser: Browser, folder: Path, width: int) -> None:
    size: dict[str, Any] = {"height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.send("Emulation.setDeviceMetricsOverride", width=width, **size)
    for name in ("case", "whole", "large", "logs"):
        browser.open(folder / f"{name}.html")
        assert browser.run("document.documentElement.scrollWidth") <= width, name
    browser.send("Emulation.clearDeviceMetricsOverride")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["whole", "case", "logs"])
def test_axe_finds_no_fault(
    browser: Browser, folder: Path, request: pytest.FixtureRequest, name: str, theme: str
) -> None:
    script = axe_script(request.config.cache.mkdir("axe"))
    if script is None:
        pytest.skip("axe-core cannot be fetched: there is no npm, or no registry")
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.send("Emulation.setEmulatedMedia", features=features)
    browser.open(folder / f"{name}.html")
    browser.run(script)
    found = browser.run("axe.run().then((all) => all.violations.map((one) =>"
        " [one.id, one.impact, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160) +"
        " ' ' + (node.any[0] ? node.any[0].message : ''))]))")  # fmt: skip
    browser.send("Emulation.setEmulatedMedia", features=[])
    assert found == []


def test_a_page_without_anything_to_show_is_whole(browser: Browser, tmp_path: Path) -> None:
    report = replace(judged(CASE)[0], causes=(), suspects=(), ladder=(), says="", verdict="healthy")
    path = tmp_path / "bare.html"
    path.write_text(page_of(report), encoding="utf-8")
    browser.open(path)
    assert not list(browser.troubles())
