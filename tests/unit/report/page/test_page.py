"""The page of every golden case: whole, of one mind with text and JSON, and no larger than it may
be.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re

import pytest

from tests.cases.expectation import names
from tests.unit.report import handmade
from tests.unit.report.page.dom import Element, Page
from tests.unit.report.page.pages import judged, large, page
from tests.unit.report.test_site_formats import REPORTS
from trainprobe.cli import run
from trainprobe.model.ranks import name_ranks
from trainprobe.report.cause_section import heading, how_sure
from trainprobe.report.json_report import report_text
from trainprobe.report.page.document import page_of
from trainprobe.report.phrases import clean
from trainprobe.report.text import first_causes, headline, text_of


def words(element: Element) -> str:
    return " ".join(element.text.split())


@pytest.mark.parametrize("name", names())
def test_text_json_and_page_of_a_case_agree(name: str) -> None:
    report, _ = judged(name)
    told, text = json.loads(report_text(report)), text_of(report)
    answer = page(name)["answer"]
    said = words(answer)
    assert words(answer.all("span", "word")[0]).startswith(told["verdict"].upper())
    assert text.split("\n\n")[1].startswith(told["verdict"].upper())
    (title,) = answer.all("h1")
    assert words(title) == headline(report, 10_000)[0][-1].text.strip()
    articles = answer.all("article")
    causes = first_causes(report)
    assert len(articles) == len(causes)
    for article, cause in zip(articles, causes, strict=True):
        shown = words(article)
        assert words(article.all("span", "cause-id")[0]) == heading(cause)
        assert heading(cause) in text
        assert how_sure(cause) in shown
        assert how_sure(cause) in text
        facts = {
            words(row.all("dt")[0]): words(row.all("dd")[0])
            for row in article.all("dl", "facts")[0].all("div")
        }
        in_json = next(
            one for one in told["causes"] if one["id"] == cause.id and one["group"] == cause.group
        )
        ranks = name_ranks(in_json["ranks"]).partition(" ")[2]
        assert facts.get("Rank", facts.get("Ranks", "")) == ranks
        assert (
            [words(one.all("b")[0]) for one in article.all("ol", "fixes")[0].all("li")]
            == [fix["title"] for fix in in_json["fixes"]]
            if in_json["fixes"]
            else not article.all("ol", "fixes")
        )
        for fix in in_json["fixes"]:
            for step in fix["steps"]:
                bare = re.sub(r"\s{2,}\(.*|\s# .*|`", "", step)
                assert " ".join(clean(bare).split()) in shown.replace("`", ""), step
        for reason in in_json["because"]:
            assert f"{reason['points']:+d}" in shown
            assert " ".join(clean(reason["says"]).replace("`", "").split()) in shown
    for one in told["undecided"]:
        if one["id"] != "cannot-look":
            assert " ".join(one["would_settle"].partition(": ")[2].split()) in said


@pytest.mark.parametrize("name", REPORTS)
def test_the_page_holds_the_words_of_the_text(name: str) -> None:
    found = Page(page_of(REPORTS[name]))
    assert found["report-text"].text.rstrip("\n").splitlines() == (
        text_of(REPORTS[name]).rstrip("\n").splitlines()
    )


def test_the_policy_lets_only_the_page_s_own_style_and_script_run() -> None:
    found = page("conditional-collective")
    (policy,) = [
        one.attributes["content"]
        for one in found.root.all("meta")
        if one.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    rules = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert rules["default-src"] == "'none'"
    for tag, rule in (("style", "style-src"), ("script", "script-src")):
        (own,) = [one for one in found.root.all(tag) if "type" not in one.attributes]
        digest = base64.b64encode(hashlib.sha256(own.text.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert set(rules) == {
        "default-src",
        "style-src",
        "script-src",
        "img-src",
        "base-uri",
        "form-action",
    }
    assert "http://" not in found.source
    assert "https://" not in found.source


def test_sections_stand_there_only_with_their_data() -> None:
    assert {"waits", "ranks", "stacks", "collectives", "ladder", "evidence"} <= sections(
        page("conditional-collective")
    )
    assert "climb" in sections(page("climb-lock-in-worker"))
    assert sections(page("explain-log-restarts")) >= {"logs", "waits"}
    assert not sections(page("explain-log-restarts")) & {"ladder", "stacks", "climb", "scaling"}
    bare = Page(page_of(handmade.HEALTHY))
    assert not sections(bare) & {"evidence", "collectives", "waits"}
    for one in (page("conditional-collective"), bare):
        linked = [link.attributes["href"][1:] for link in one.root.all("nav")[0].all("a")]
        assert linked == [
            part.attributes["id"] for part in one["main"].children if isinstance(part, Element)
        ]


def sections(found: Page) -> set[str]:
    return {one.attributes.get("id", "") for one in found["main"].all("section")} - {""}


@pytest.mark.parametrize(
    "name", ["conditional-collective", "climb-lock-in-worker", "explain-log-restarts"]
)
def test_headings_landmarks_and_names_are_in_order(name: str) -> None:
    """What axe-core would find: checked by hand."""
    found = page(name)
    assert found.root.attributes["lang"] == "en"
    assert [len(found.root.all(tag)) for tag in ("main", "h1", "header", "nav")] == [1, 1, 1, 1]
    level = 0
    for one in found.root:
        if re.fullmatch("h[1-4]", one.tag):
            assert int(one.tag[1]) <= level + 1, words(one)
            level = int(one.tag[1])
            assert words(one)
    for one in found.root.all("button"):
        assert one.attributes["type"] == "button"
        assert words(one)
    for one in found.root.all("input"):
        assert any(one in label for label in found.root.all("label"))
    for one in found.root.all("svg"):
        assert one.attributes.get("aria-hidden") == "true" or one.all("title")
    for one in found.root.all("th"):
        assert one.attributes["scope"] in ("row", "col")
    for one in found.root.all(cls="scroll"):
        assert one.attributes["tabindex"] == "0"
    for one in found.root.all(cls="grid"):
        roles = {part.attributes.get("role") for part in one if part is not one} - {None}
        assert roles == {"row", "rowheader", "gridcell"}


@pytest.mark.parametrize(("count", "limit"), [(1024, 1_500_000), (4096, 3_000_000)])
def test_the_page_of_many_ranks_is_small(count: int, limit: int) -> None:
    report = large(count)
    text = page_of(report)
    assert len(text.encode()) < limit
    found = Page(text)
    assert len(found["grid"].all("i")) == count
    assert len(found["grid"].all("i", "q")) == 1
    data = json.loads(found["rank-data"].text)
    assert sorted(data["rank"]) == list(range(count))
    assert data["rank"][data["place"].index(1)] == 77
    assert len(found["waits"].all("g", "node")) == 3
    assert len(found.root.all("table", "places")[0].all("tr")) == 3


def test_hosts_are_sorted_as_people_count() -> None:
    found = Page(page_of(large(96, each=8)))
    hosts = [words(one) for one in found["grid"].all("b")]
    assert hosts == [f"node{place:04d}" for place in range(12)]


def test_report_writes_the_page_of_a_case(
    tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.cases.expectation import CASES

    target = f"{tmp_path}/page.html"
    case = str(CASES / "conditional-collective")
    assert run(["report", case, "--html", target, "--quiet"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("HUNG")
    assert f"page  {target}" in said
    with open(target, encoding="utf-8") as file:
        found = Page(file.read())
    assert found.has("collectives")
    assert (
        run(["report", case, "--html", target, "-q", "--against", str(CASES / "rank-stuck")]) == 1
    )
    said = capsys.readouterr().out
    assert (
        f"rank-stuck ({how_sure(judged('rank-stuck')[0].causes[0])}) is not found any more." in said
    )
    assert "rank-conditional-collective (almost certain, 98 %) is new" in said
    with open(target, encoding="utf-8") as file:
        assert "is not found any more" in words(Page(file.read())["against"])
    assert run(["report", str(tmp_path), "--html", target]) == 2


def test_every_concluding_command_writes_a_page(tmp_path: object) -> None:
    from tests.cases.expectation import CASES

    target = f"{tmp_path}/page.html"
    assert run(["explain", str(CASES / "rank-stuck"), "--html", target, "--quiet"]) == 1
    with open(target, encoding="utf-8") as file:
        assert Page(file.read()).has("evidence")
    script = f"{tmp_path}/train.py"
    with open(script, "w", encoding="utf-8") as file:
        file.write("print('<script>')\n")
    assert run(["lint", script, "--html", target, "--quiet"]) in (0, 1)
    with open(target, encoding="utf-8") as file:
        assert Page(file.read()).has("findings")
