"""A page as a tree, read by the standard library's parser; reading it checks that it is whole and
leads nowhere.
"""

from __future__ import annotations

import html.parser
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

EMPTY = ("br", "col", "hr", "input", "link", "meta", "wbr")
TAGS = frozenset(
    "a article aside b body button caption circle code dd defs details div dl dt figcaption figure"
    " g h1 h2 h3 h4 head header html i input label li link main marker meta nav ol output p path"
    " polygon polyline pre rect script section small span style summary svg table tbody td text th"
    " thead title tr ul".split()
)


@dataclass
class Element:
    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def all(self, tag: str = "", cls: str = "") -> list[Element]:
        return [
            one
            for one in self
            if (not tag or one.tag == tag)
            and (not cls or cls in one.attributes.get("class", "").split())
        ]

    def __iter__(self) -> Iterator[Element]:
        yield self
        for child in self.children:
            if isinstance(child, Element):
                yield from child


class Page(html.parser.HTMLParser):
    """`root` is the html element."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = text
        top = Element("")
        self._open = [top]
        self.feed(text)
        self.close()
        assert len(self._open) == 1, f"open at the end: {self._open[-1].tag}"
        (self.root,) = [one for one in top.children if isinstance(one, Element)]
        self._check()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"{tag} has an attribute twice: {names}"
        made = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(made)
        if tag not in EMPTY:
            self._open.append(made)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)

    def __getitem__(self, name: str) -> Element:
        (found,) = [one for one in self.root if one.attributes.get("id") == name]
        return found

    def has(self, name: str) -> bool:
        return any(one.attributes.get("id") == name for one in self.root)

    def _check(self) -> None:
        counted = Counter(one.attributes["id"] for one in self.root if "id" in one.attributes)
        assert not [name for name, count in counted.items() if count > 1]
        for one in self.root:
            assert one.tag in TAGS, one.tag
            for name, value in one.attributes.items():
                assert not name.startswith("on"), (one.tag, name)
                assert name not in ("style", "src", "srcdoc", "action", "formaction"), name
                if name == "href" and one.tag != "link":
                    assert value.startswith("#"), value
                    assert value[1:] in counted, f"{value} leads nowhere"
                if name in ("aria-labelledby", "aria-describedby", "for"):
                    assert value in counted, f"{one.tag} is named by {value}"
        assert [one.attributes["href"] for one in self.root.all("link")] == ["data:,"]
        kinds = [one.attributes.get("type", "") for one in self.root.all("script")]
        assert kinds.count("") == 1
        assert set(kinds) <= {"", "application/json"}
