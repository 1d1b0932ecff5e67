"""Keeps secrets off the disk: what looks like one is replaced by a stand-in such as <hidden:HF_TOKEN>.

Every pattern runs in time linear in its text: repetitions are bounded or begin at a fixed word.
"""

from __future__ import annotations

import functools
import math
import re
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)|[ -/]{1,4}[0-~]|[0-Z\\^_`-~])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f\ud800-\udfff]")

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_ALWAYS = ("password", "passwords", "passwd", "passphrase", "secret", "secrets", "credential", "credentials", "apikey", "apikeys")
_ALONE = frozenset({"auth", "authorization", "cookie", "cookies", "dsn", "oauth"})
# What makes a `key` or the plural `tokens` a secret: without one of these they are a dictionary's, a cache's or a vocabulary's.
_OWNERS = re.compile(
    "access|account|api|app|auth|azure|aws|client|deploy|encryption|gcp|github|gitlab|hf|hmac|openai|private|secret|service|session|"
    "sign|signing|ssh|storage|subscription|wandb|webhook"
)
_VOCABULARY = re.compile(
    "add|audio|bos|class|cls|current|end|eod|eos|extra|first|generated|image|input|last|mask|max|min|new|next|num|out|output|pad|per|"
    "prev|separator|sep|special|start|stop|target|total|unk|vocab|word"
)
_PLAIN_KEYS = re.compile("cache|foreign|group|hash|lookup|partition|primary|public|sort|store")
# A name that ends so tells about a secret without being one.
_NEUTRAL = re.compile(
    "class|count|dir|enabled|error|file|files|index|len|length|limit|method|mode|name|parallelism|path|rate|size|sock|timeout|ttl|type|version"
)
_TRIVIAL = re.compile("auto|default|disabled|enabled|false|no|none|null|off|on|optional|required|self|true|undefined|unset|yes", re.IGNORECASE)
_DIGIT = re.compile(r"[0-9]")
_NUMBER = re.compile(r"[+-]?[0-9]{1,20}(?:\.[0-9]{0,20})?")
_PATH = re.compile(r"(?:~|\.{1,2})?(?:/[\w.+@:-]{1,255}){2,64}/?")
_ATTRIBUTE = re.compile(r"[A-Za-z_]\w{0,64}(?:\.[A-Za-z_]\w{0,64}){1,8}")

_ASSIGNED = re.compile(r"(?<![A-Za-z0-9_])([A-Za-z_][\w.\-]{0,63})(\\?[\"']?)([ \t]{0,4})([=:])([ \t]{0,4})")
_OPTION = re.compile(r"(?<![\w-])--?([A-Za-z][\w.\-]{0,63})[ \t]{1,4}")
_VALUE = re.compile(
    r"(?:(?:Basic|Bearer|Digest|Token)[ \t]{1,4})?(?:\\?\"([^\"\\\n]{1,4096})|\\?'([^'\\\n]{1,4096})|([^\s\"'&;,<>()\[\]{}\\]{1,2048}))", re.IGNORECASE
)
_HINTS = ("token", "passw", "passphrase", "secret", "credential", "key", "auth", "cookie", "dsn", "x-amz-signature")

_PEM = re.compile(r"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY( BLOCK)?-----")
_PEM_BODY = re.compile(r"[A-Za-z0-9+/=\s\\:,-]{0,65536}")
_URL_USER = re.compile(r"://([^\s/:@\"'<>]{0,256})(?::([^\s/\"'<>]{0,256}))?@")
_BEARER = re.compile(r"bearer[ \t]{1,4}([A-Za-z0-9._~+/-]{8,4096}={0,4})", re.IGNORECASE)
# A key in a sentence ("API key 0a1b… is not valid"): hexadecimal digits alone are a hash as often, so the word must stand before them.
_KEY_IN_PROSE = re.compile(r"(?i:\b(?:api|access|secret)[ _-]?key)\b[^\n0-9A-Za-z]{0,4}(?:[A-Za-z]{1,12} ){0,3}['\"(]?([0-9a-f]{32,128})\b")
_RANDOM_ID = re.compile(r"[A-Za-z0-9_-]{16,}")
# Prefix that must be there, stand-in, pattern. Each begins with its prefix, so the search for it is a plain one.
_TOKENS: Tuple[Tuple[str, str, re.Pattern[str]], ...] = tuple(
    (prefix, name, re.compile(pattern))
    for prefix, name, pattern in (
        ("hf_", "hf-token", r"hf_[A-Za-z0-9]{16,256}"),
        ("sk-", "sk-key", r"sk-(?:[A-Za-z0-9]{1,12}-){0,3}[A-Za-z0-9_]{16,512}[A-Za-z0-9_-]{0,512}"),
        ("ghp_", "github-token", r"ghp_[A-Za-z0-9]{16,256}"),
        ("gho_", "github-token", r"gho_[A-Za-z0-9]{16,256}"),
        ("ghs_", "github-token", r"ghs_[A-Za-z0-9]{16,256}"),
        ("ghu_", "github-token", r"ghu_[A-Za-z0-9]{16,256}"),
        ("ghr_", "github-token", r"ghr_[A-Za-z0-9]{16,256}"),
        ("github_pat_", "github-token", r"github_pat_[A-Za-z0-9_]{16,256}"),
        ("glpat-", "gitlab-token", r"glpat-[A-Za-z0-9_-]{16,256}"),
        ("xox", "slack-token", r"xox[abeprs]-[A-Za-z0-9-]{10,256}"),
        ("AKIA", "aws-access-key", r"AKIA[0-9A-Z]{16}(?![0-9A-Za-z])"),
        ("ASIA", "aws-access-key", r"ASIA[0-9A-Z]{16}(?![0-9A-Za-z])"),
        ("AIza", "google-key", r"AIza[0-9A-Za-z_-]{35}"),
        ("npm_", "npm-token", r"npm_[A-Za-z0-9]{30,64}"),
        ("eyJ", "jwt", r"(?<![A-Za-z0-9_])eyJ[A-Za-z0-9_-]{6,4096}\.[A-Za-z0-9_-]{6,8192}\.[A-Za-z0-9_-]{0,2048}"),
    )
)
MOST_DEPTH = 100
SHORT, MOST_SEEN = 200, 20_000
MANY = 20  # rows from which on they are looked at together first
_LARGEST = 1e300  # and so neither infinite nor no number
Hide = Callable[[str, str], str]


def clean(text: str) -> str:
    """Return `text` without escape sequences and control characters; a carriage return counts as the end of a line."""
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", text)


def looks_secret(name: str) -> bool:
    """Say whether a variable, key or option called `name` holds a secret: HF_TOKEN, api-key and dbPassword do, tokenizer, KEYBOARD and MASTER_ADDR do not."""
    return _named_secret(name) if len(name) <= SHORT else _named_secret.__wrapped__(name)


@functools.lru_cache(maxsize=8192)
def _named_secret(name: str) -> bool:
    words = [word.lower() for word in _WORDS.findall(name)]
    if not words or _NEUTRAL.fullmatch(words[-1]):
        return False
    for place, word in enumerate(words):
        before = words[place - 1] if place else ""
        if word.endswith(_ALWAYS) or word in _ALONE or (word in ("pass", "pwd") and name.isupper() and before not in ("", "old")):
            return True
        if word.endswith("token") and words[-1] == word:
            return not _VOCABULARY.fullmatch(before)
        if word in ("key", "keys", "tokens") and (_OWNERS.fullmatch(before) or (word == "key" and name.isupper() and not _PLAIN_KEYS.fullmatch(before))):
            return True
    return name.lower() == "x-amz-signature"


def _tells_nothing(name: str, value: str) -> bool:
    """Say whether `value` is a switch, a number or a place holder rather than a secret."""
    if _TRIVIAL.fullmatch(value) or value.startswith(("<", "$", "*", "%")):
        return True
    return bool(_NUMBER.fullmatch(value)) and not re.search(r"(?i)pass|secret", name)


def _mixed(value: str) -> bool:
    return len(value) >= 6 and _DIGIT.search(value) is not None


class Redactor:
    """Hides secrets in text, nested data and files. It starts with the values of the secret-looking variables of `environ`.

    A secret found once is known from then on, and has the same stand-in everywhere.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._known: Dict[str, str] = {}
        self._seen: Set[str] = set()  # short texts that hold nothing: evidence repeats its keys and words some hundred times
        self.learn(environ)

    def learn(self, environ: Mapping[str, str]) -> None:
        """Hide from now on the values of the secret-looking variables of `environ` as well."""
        for name, value in environ.items():
            if looks_secret(name) and not _tells_nothing(name, value) and not _PATH.fullmatch(value):  # where a secret lies is none
                self._learn(name, value)
                for line in value.split("\n"):
                    if len(line) >= 20 and not line.startswith("-----"):
                        self._learn(name, line)

    def _learn(self, name: str, value: str) -> None:
        # A short plain word would be hidden all over the place; next to its name it is hidden anyway.
        if value not in self._known and (len(value) >= 8 or _mixed(value)):
            known = {**self._known, value: name}
            self._known = dict(sorted(known.items(), key=lambda each: -len(each[0])))
            self._seen = set()  # a new one: another thread may still add to the old what was looked at with less knowledge

    def text(self, text: str) -> Tuple[str, int]:
        """Return `text` with secrets hidden, and how many were."""
        return self._all(text, lambda name, _: f"<hidden:{name}>")

    def blob(self, content: bytes) -> Tuple[bytes, int]:
        """Return binary `content` with secrets overwritten in place, so that its structure still holds, and how many were."""
        text, count = self._all(content.decode("latin-1"), lambda _, secret: "*" * len(secret))
        return text.encode("latin-1"), count

    def data(self, data: Any) -> Tuple[Any, int]:
        """Return plain JSON data with every string cleaned and its secrets hidden, and how many were.

        Under a key that looks secret the whole string goes; in a list `--token` hides what follows it. Numbers that JSON does not have
        become their names: nan, inf, -inf.
        """
        return self._data(data, 0)

    def _cleaned(self, text: str) -> Tuple[str, int]:
        seen = self._seen
        if text in seen:
            return text, 0
        shown, count = self.text(clean(text))
        if not count and shown == text and len(text) <= SHORT:
            if len(seen) >= MOST_SEEN:
                seen.clear()
            seen.add(text)
        return shown, count

    def _data(self, data: Any, depth: int) -> Tuple[Any, int]:
        if isinstance(data, str):
            return self._cleaned(data)
        if isinstance(data, float) and not math.isfinite(data):
            return str(data), 0
        if depth > MOST_DEPTH:
            return "<nested too deeply>", 0
        if isinstance(data, Mapping):
            hidden: Dict[str, Any] = {}
            total = 0
            for key, item in data.items():
                shown, count = self._cleaned(str(key))
                hidden[shown], more = self._named(shown, item, depth)
                total += count + more
            return hidden, total
        if isinstance(data, (list, tuple)):
            return (data, 0) if len(data) >= MANY and self._harmless(data) else self._list(data, depth)
        return data, 0

    def _harmless(self, rows: Sequence[Any]) -> bool:
        """Say whether a long list of flat rows holds nothing to hide or to clean: one look at all their text costs a tenth of one at each."""
        texts: List[str] = []
        for row in rows:
            if not isinstance(row, list):
                return False
            for item in row:
                if isinstance(item, str):
                    if item.startswith("-"):
                        return False
                    texts.append(item)
                elif not (item is None or (isinstance(item, (int, float)) and -_LARGEST < item < _LARGEST)):
                    return False
        text = "\n".join(texts)
        return clean(text) == text and self.text(text)[1] == 0

    def _named(self, name: str, item: Any, depth: int) -> Tuple[Any, int]:
        if isinstance(item, str) and looks_secret(name) and not _tells_nothing(name, item) and item:
            return self._stand_in(name, item), 1
        return self._data(item, depth + 1)

    def _list(self, data: Any, depth: int) -> Tuple[List[Any], int]:
        hidden: List[Any] = []
        total = 0
        option = ""
        for item in data:
            taken = option and isinstance(item, str) and not item.startswith("-")
            shown, count = self._named(option, item, depth) if taken else self._data(item, depth + 1)
            hidden.append(shown)
            total += count
            option = item.lstrip("-") if isinstance(item, str) and item.startswith("-") and "=" not in item and _takes_secret(item) else ""
        return hidden, total

    def _stand_in(self, name: str, secret: str) -> str:
        known = self._known.get(secret)
        if known is None and len(secret) >= 12 and _mixed(secret):
            self._learn(name, secret)
        return f"<hidden:{known or name}>"

    # --- text

    def _all(self, text: str, hide: Hide) -> Tuple[str, int]:
        count = 0
        for finder in (self._known_values, _pem_keys, _tokens, _url_passwords, self._assignments):
            text, more = finder(text, hide)
            count += more
        return text, count

    def _known_values(self, text: str, hide: Hide) -> Tuple[str, int]:
        count = 0
        for value, name in self._known.items():
            if value not in text:
                continue
            if len(value) >= 8:
                count += text.count(value)
                text = text.replace(value, hide(name, value))
            else:  # short: only as a word of its own
                shown = hide(name, value)
                text, more = re.subn(rf"(?<![A-Za-z0-9_]){re.escape(value)}(?![A-Za-z0-9_])", shown.replace("\\", r"\\"), text)
                count += more
        return text, count

    def _assignments(self, text: str, hide: Hide) -> Tuple[str, int]:
        """Hide the values of NAME=value, "name": "value", name: value and --name value, where the name looks secret."""
        lowered = text.lower()
        if not any(hint in lowered for hint in _HINTS):
            return text, 0
        spans: List[Tuple[int, int, str]] = []
        for found in _ASSIGNED.finditer(text):
            name, quote, before, sign, after = found.groups()
            if not looks_secret(name):
                continue
            span = _value_at(text, found.end())
            if span is not None and _is_value(text, name, quote, (before, sign, after), found.start(), span):
                spans.append((*span, name.lstrip("-")))
        for found in _OPTION.finditer(text) if "-" in text else ():
            span = _value_at(text, found.end()) if _takes_secret(found[1]) else None
            if span is not None and not text.startswith("-", span[0]) and not _tells_nothing(found[1], text[span[0] : span[1]]):
                spans.append((*span, found[1]))
        return _replace(text, spans, lambda name, secret: hide(self._stand_in(name, secret)[8:-1], secret))


def _takes_secret(option: str) -> bool:
    words = option.lstrip("-").lower().replace("_", "-").split("-")
    return words[0] not in ("use", "no", "disable", "enable", "with", "without", "skip") and looks_secret(option.lstrip("-"))


def _value_at(text: str, start: int) -> Optional[Tuple[int, int]]:
    found = _VALUE.match(text, start)
    if found is None:
        return None
    group = found.lastindex or 0
    return found.start(group), found.end(group)


def _is_value(text: str, name: str, quote: str, sign: Tuple[str, str, str], start: int, span: Tuple[int, int]) -> bool:
    """Tell a secret from program text and prose: `token = next(it)` and `invalid token: if` are none."""
    value = text[span[0] : span[1]]
    if _tells_nothing(name, value) or value == name:
        return False
    quoted = text[span[0] - 1] in "\"'"
    if quote or quoted or name.isupper() or _mixed(value):
        return True
    if start and text[start - 1] in "-?&":  # an option, or part of an address
        return True
    before, equals, after = sign
    if _ATTRIBUTE.fullmatch(value) or text[span[1] : span[1] + 1] in ("(", "[") or (value.isidentifier() and (before or (after and equals == "="))):
        return False
    return name.lower().endswith(_ALWAYS) or (equals == ":" and name.lower() in ("authorization", "cookie", "set-cookie"))


def _replace(text: str, spans: List[Tuple[int, int, str]], hide: Hide) -> Tuple[str, int]:
    pieces: List[str] = []
    at = count = 0
    for start, end, name in sorted(spans):
        if start < at or start == end:
            continue
        pieces += (text[at:start], hide(name, text[start:end]))
        at = end
        count += 1
    return "".join([*pieces, text[at:]]) if count else text, count


def _pem_keys(text: str, hide: Hide) -> Tuple[str, int]:
    """Hide private keys; one whose end was cut off as far as it looks like a key."""
    if "PRIVATE KEY" not in text:
        return text, 0
    spans: List[Tuple[int, int, str]] = []
    marks = list(_PEM.finditer(text))
    for mark, following in zip(marks, [*marks[1:], None]):
        if mark[1] == "END":
            continue
        if following is not None and following[1] == "END":
            spans.append((mark.start(), following.end(), "private-key"))
        else:
            body = _PEM_BODY.match(text, mark.end(), following.start() if following else len(text))
            spans.append((mark.start(), body.end() if body else mark.end(), "private-key"))
    return _replace(text, spans, hide)


def _tokens(text: str, hide: Hide) -> Tuple[str, int]:
    spans: List[Tuple[int, int, str]] = []
    for prefix, name, pattern in _TOKENS:
        if prefix in text:
            spans += [
                (found.start(), found.end(), name)
                for found in pattern.finditer(text)
                if not (found.start() and (text[found.start() - 1].isalnum() or text[found.start() - 1] == "_"))
            ]
    if "earer" in text or "EARER" in text:
        spans += [(found.start(1), found.end(1), "bearer") for found in _BEARER.finditer(text) if _mixed(found[1]) or len(found[1]) >= 16]
    if "ey" in text or "EY" in text:
        spans += [(found.start(1), found.end(1), "api-key") for found in _KEY_IN_PROSE.finditer(text)]
    return _replace(text, spans, hide)


def _url_passwords(text: str, hide: Hide) -> Tuple[str, int]:
    """Hide the password of scheme://user:password@host, and a user that is a token itself, as in a Sentry DSN."""
    if "://" not in text or "@" not in text:
        return text, 0
    spans: List[Tuple[int, int, str]] = []
    for found in _URL_USER.finditer(text):
        if found[2] and not found[2].startswith("<hidden:"):
            spans.append((found.start(2), found.end(2), "url-password"))
        if _RANDOM_ID.fullmatch(found[1]) and _mixed(found[1]):
            spans.append((found.start(1), found.end(1), "url-user"))
    return _replace(text, spans, hide)
