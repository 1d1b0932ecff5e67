"""Keeps secrets off the disk: what looks like one is replaced by a stand-in such as
<hidden:HF_TOKEN>.

Every pattern runs in time linear in its text: repetitions are bounded or begin at a fixed word.
"""

from __future__ import annotations

import functools
import math
import re
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from trainprobe.secret_forms import FORMS, compiled

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)|["
    r" -/]{1,4}[0-~]|[0-Z\\^_`-~])"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f\ud800-\udfff]")

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_ALWAYS = tuple(
    """
    password passwords passwd passphrase secret secrets credential credentials apikey apikeys
    """.split()
)
_ALONE = frozenset(
    {"auth", "authorization", "bearer", "cookie", "cookies", "cred", "creds", "dsn", "jwt", "oauth"}
    | {"passcode", "psk", "pw", "webhook", "webhooks"}
)
# Short words that are a secret's name only behind something that has one: DB_PASS, smtp_pwd,
# GITHUB_PAT.
_BRIEF = frozenset({"pass", "pwd", "pat", "sas"})
_ACCOUNTS = frozenset(
    ["admin", "azure", "blob", "git", "github", "gitlab", "registry", "storage", "user"]
)
_STAGES = frozenset(
    """
    all backward bwd compiler did each early first forward full fusion fwd graph inductor joint
    last max min multi must n next num old one opt optimization pattern per post pre render
    second single test this two
    """.split()
)
# What ends so names a thing that looks random without being a secret.
_IDENTIFIERS = frozenset(
    """
    address boundary checksum commit comm cursor digest etag fingerprint guid hash host hostname
    id ids image integrity kernel md5 node nonce ref rev revision run seed sha sha1 sha256
    sha512 symbol tag trace uid url uuid xid
    """.split()
)
# What makes a `key` or the plural `tokens` a secret: without one of these they are a dictionary's,
# a cache's or a vocabulary's.
_OWNERS = frozenset(
    """
    access account anthropic api app auth azure aws client cohere comet databricks deploy
    encryption gcp gemini github gitlab google groq hf hmac kaggle mistral neptune nvidia openai
    openrouter pinecone private replicate secret sendgrid service session sign signing ssh
    storage stripe subscription together wandb webhook
    """.split()
)
_VOCABULARY = frozenset(
    """
    add audio bos class cls current end eod eos extra first generated image input last mask max
    min new next num out output pad per prev separator sep special start stop target total unk
    vocab word
    """.split()
)
_PLAIN_KEYS = frozenset(
    """
    cache foreign group hash lookup partition primary public sort store
    """.split()
)
# A name that ends so tells about a secret without being one.
_NEUTRAL = frozenset(
    """
    class count dir enabled error file files index len length limit method mode name parallelism
    path rate size sock timeout ttl type version
    """.split()
)
_TRIVIAL = re.compile(
    "auto|default|disabled|enabled|false|no|none|null|off|on|optional|required|self|true|undefined|unset|yes",
    re.IGNORECASE,
)
_DIGIT = re.compile(r"[0-9]")
_NUMBER = re.compile(r"[+-]?[0-9]{1,20}(?:\.[0-9]{0,20})?")
_PATH = re.compile(r"(?:~|\.{1,2})?(?:/[\w.+@:-]{1,255}){2,64}/?")
_ATTRIBUTE = re.compile(r"[A-Za-z_]\w{0,64}(?:\.[A-Za-z_]\w{0,64}){1,8}")

_ASSIGNED = re.compile(
    r"(?<![A-Za-z0-9_])([A-Za-z_][\w.\-]{0,63})(\\?[\"']?)([ \t]{0,4})([=:])([ \t]{0,4})"
)
_OPTION = re.compile(r"(?<![\w-])--?([A-Za-z][\w.\-]{0,63})[ \t]{1,4}")
# A value that no quote encloses ends at a separator, unless what follows it can only be more of the
# value.
_VALUE = re.compile(
    r"(?:(?:Basic|Bearer|Digest|Token)[ \t]{1,4})?(?:[bru]{0,2}(?:"
    r"\\\"([^\"\\\n]{1,4096})|\\'([^'\\\n]{1,4096})|\"((?:[^\"\\\n]|\\.){1,4096})|'((?:[^'\\\n]"
    r"|\\.){1,4096})"
    r")|([^\s\"'&;,<>()\[\]{}\\]{1,2048}(?:[&;,](?![\w.-]{0,64}=)[^\s\"'&;,<>()\[\]{}\\]{1,512}){0,4}))",
    re.IGNORECASE,
)
_SEVERAL = re.compile(r"[\[(]([^\])\n]{1,4096})")
_QUOTED = re.compile(r"\"([^\"\n]{1,1024})\"|'([^'\n]{1,1024})'")
_HINTS = tuple(
    """
    token pass pw secret cred key auth cookie dsn x-amz-signature hook jwt bearer psk _pat _sas
    """.split()
)

_PEM = re.compile(r"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY( BLOCK)?-----")
_PEM_BODY = re.compile(r"[A-Za-z0-9+/=\s\\:,-]{0,65536}")
_URL_USER = re.compile(r"://([^\s/:@\"'<>]{0,256})(?::([^\s/\"'<>]{0,256}))?@")
_BEARER = re.compile(r"bearer[ \t]{1,4}([A-Za-z0-9._~+/-]{8,4096}={0,4})", re.IGNORECASE)
# A key in a sentence ("API key 0a1b… is not valid"): hexadecimal digits alone are a hash as often,
# so the word must stand before them.
_KEY_IN_PROSE = re.compile(
    r"(?i:\b(?:api|access|secret)[ _-]?key)\b[^\n0-9A-Za-z]{0,4}(?:[A-Za-z]{1,12}"
    r" ){0,3}['\"(]?([0-9a-f]{32,128})\b"
)
# "the password is X": X is any word but one that says something about the password.
_PASSWORD_IN_PROSE = re.compile(
    r"(?i:\bpass(?:word|wd|phrase|code))\b[\"']?(?: for [\w.@'\"-]{1,64})?( (?:is|was)(?: now)?:?|"
    r" (?:re)?set to| changed to| ?(?:->|=>|:=))?"
    r" {1,2}(?:\"([^\"\n]{1,256})\"|'([^'\n]{1,256})'|([^\s\"'`]{1,256}))"
)
_ABOUT_A_PASSWORD = re.compile(
    r"(?:an?|and|as|at|bad|be|but|by|case|correct|different|either|empty|expected|for|from|has"
    r"|hidden|in\w*|left|likely|long|missing|"
    r"must|never|no|none|not|now|null|of|ok|old|on|only|or|probably|same|set|short|so|still|the"
    r"|this|that|to|too|un\w*|via|weak|"
    r"when|with|without|wrong|your?|my|\w+(?:able|ed|ing|ly|ory))[.,;:!?)]{0,3}",
    re.IGNORECASE,
)
_SECRET_BEFORE = re.compile(
    r"\b((?i:(?:api|access|secret|auth|account|license)["
    r" _-]?(?:key|token)|secret|credential|bearer)|(?i:token|key|pat|jwt))s?\b"
    r"[^\n0-9A-Za-z]{0,4}(?:[A-Za-z]{1,12}:? ){0,3}[`'\"(<]?\Z"
)
_STRONG = re.compile("(?i)secret|credential|bearer|[ _-]")
_RANDOM = re.compile(r"[A-Za-z0-9_+/.~-]{20,512}={0,2}")
_CANDIDATE = re.compile(r"[A-Za-z0-9_+/.~-]{16,512}={0,2}")
_LONG = re.compile(r"[A-Za-z0-9_.%~+-]{16}")  # no form has less in one piece
_NAME_BEFORE = re.compile(r"([A-Za-z_][\w.-]{0,63})[\"']?[ ]?([=:])([\"' ]{0,2})\Z")
_OPTION_BEFORE = re.compile(r"(?<![\w-])--([A-Za-z][\w.-]{0,63})[ \t]{1,4}\Z")
_PIECES = re.compile(r"[A-Za-z0-9]+")
_SHORT_OPTION = re.compile(
    r"(?<![\w-])-(-user|-proxy-user|[aPpuUw])(?:[ \t]{1,4}|=|(?<=p))[\"']?([^\s\"']{1,256})"
)
_SHORT_ALONE = re.compile(r"-(-user|-proxy-user|[aPpuUw])")
# Programs whose -p, -a or -w is a password, whatever it looks like; those whose -p is a partition.
_LOGINS = re.compile(
    r"\b(?:sshpass|mysql\w{0,8}|mariadb[\w-]{0,8}|login|mongo\w{0,8}|redis-cli|ldap\w{1,8}"
    r"|smbclient|htpasswd|unzip|zip|7z|sqlcmd)\b"
)
_SCHEDULERS = re.compile(
    r"\b(?:srun|sbatch|salloc|sinfo|squeue|sacct|scancel|scontrol)\b|#SBATCH\b"
)
# What stands before a form and makes it the end of a longer word; an escaped line end or sign does
# not.
_WITHIN_A_WORD = re.compile(r"(?!.{0,1}\\[nrt].\Z|%[0-9A-Fa-f]{2}.\Z).{0,2}\w\w\Z")
_STAND_IN = re.compile(r"<hidden:[\w.-]{1,64}>")
_RANDOM_ID = re.compile(r"[A-Za-z0-9_-]{16,}")
MOST_DEPTH = 100
SHORT, MOST_SEEN = 200, 20_000
MANY = 20  # rows from which on they are looked at together first
_UNHIDDEN = frozenset((int, bool, type(None)))
_KEPT = _UNHIDDEN | {str, float, list}
_LARGEST = 1e300  # and so neither infinite nor no number
Hide = Callable[[str, str], str]


def clean(text: str) -> str:
    """Return `text` without escapes and control characters; a carriage return ends a line."""
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", text)


def looks_secret(name: str) -> bool:
    """Say whether a variable, key or option called `name` holds a secret: HF_TOKEN, api-key and
    dbPassword do, tokenizer, KEYBOARD and MASTER_ADDR do not.
    """
    return _named_secret(name) if len(name) <= SHORT else _named_secret.__wrapped__(name)


@functools.lru_cache(maxsize=8192)
def _named_secret(name: str) -> bool:
    words = [word.lower() for word in _WORDS.findall(name)]
    if not words or words[-1] in _NEUTRAL:
        return False
    for place, word in enumerate(words):
        before = words[place - 1] if place else ""
        if word.endswith(_ALWAYS) or word in _ALONE:
            return True
        if before not in ("", "old") and word in _BRIEF and words[-1] == word:
            known = before in _ACCOUNTS if word in ("pat", "sas") else before not in _STAGES
            if known or name.isupper():
                return True
        if word.endswith("token") and words[-1] == word:
            return before not in _VOCABULARY
        if word in ("key", "keys", "tokens") and (
            before in _OWNERS or (word == "key" and name.isupper() and before not in _PLAIN_KEYS)
        ):
            return True
    return name.lower() == "x-amz-signature"


def _tells_nothing(name: str, value: str) -> bool:
    """Say whether `value` is a switch, a number or a place holder rather than a secret."""
    if _TRIVIAL.fullmatch(value) or value.startswith(("<", "$", "*", "%")):
        return True
    return bool(_NUMBER.fullmatch(value)) and not re.search(r"(?i)pass|secret", name)


def _mixed(value: str) -> bool:
    return len(value) >= 6 and _DIGIT.search(value) is not None


# Paths, mangled names, numbers, and JSON in base64, as DeepSpeed hands over its hosts.
_NOT_DRAWN = ("/", "./", "../", "~/", "_Z", "0x", "eyJ", "W3si")


def _random(value: str) -> bool:
    """Say whether `value` was drawn at random from letters of both cases and digits.

    In such a text neighbours are of different kinds six times of ten (62 signs), in names one to
    three times. Hexadecimal digits and UUIDs are none: they identify things.
    """
    if not _RANDOM.fullmatch(value) or value.startswith(_NOT_DRAWN):
        return False
    pieces = _PIECES.findall(value)
    whole = "".join(pieces)
    if max(map(len, pieces)) < 16 or len(set(whole)) < 12:
        return False
    kinds = [
        "".join("0" if sign.isdigit() else "A" if sign.isupper() else "a" for sign in piece)
        for piece in pieces
    ]
    counts = ["".join(kinds).count(kind) for kind in "0Aa"]
    changes = sum(item != following for piece in kinds for item, following in zip(piece, piece[1:]))
    return counts[0] >= 2 and min(counts) >= 1 and changes >= 0.38 * (len(whole) - len(pieces))


@functools.lru_cache(maxsize=8192)
def _identifies(name: str) -> bool:
    """Say whether `name` is that of something that looks random without being a secret."""
    words = [word.lower() for word in _WORDS.findall(name)]
    ends = ("".join(words[-1:]), "".join(words[-2:]))
    return any(end in _IDENTIFIERS for end in ends) or bool(ends[0] in _NEUTRAL)


class Redactor:
    """Hides secrets in text, nested data and files. It starts with the values of the secret-looking
    variables of `environ`.

    A secret found once is known from then on, and has the same stand-in everywhere.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._known: Dict[str, str] = {}
        # short texts that hold nothing: evidence repeats its keys and words some hundred times
        self._seen: Set[str] = set()
        # of these also those that are hidden under no name, and in no place of a list
        self._plain: Set[str] = set()
        self.learn(environ)

    def learn(self, environ: Mapping[str, str]) -> None:
        """Hide from now on the values of the secret-looking variables of `environ` as well."""
        for name, value in environ.items():
            if (
                looks_secret(name)
                and not _tells_nothing(name, value)
                and not _PATH.fullmatch(value)
            ):  # where a secret lies is none
                self._learn(name, value)
                for line in value.split("\n"):
                    if len(line) >= 20 and not line.startswith("-----"):
                        self._learn(name, line)

    def _learn(self, name: str, value: str) -> None:
        # A short plain word would be hidden all over the place; next to its name it is hidden
        # anyway.
        if value not in self._known and (len(value) >= 8 or _mixed(value)):
            known = {**self._known, value: name}
            self._known = dict(sorted(known.items(), key=lambda each: -len(each[0])))
            # a new one: another thread may still add to the old what was looked at with less
            # knowledge
            self._seen = set()
            self._plain = set()

    def text(self, text: str) -> Tuple[str, int]:
        """Return `text` with secrets hidden, and how many were."""
        return self._all(text, lambda name, _: f"<hidden:{name}>")

    def blob(self, content: bytes) -> Tuple[bytes, int]:
        """Return `content` with secrets overwritten in place, and how many there were."""
        text, count = self._all(content.decode("latin-1"), lambda _, secret: "*" * len(secret))
        return text.encode("latin-1"), count

    def data(self, data: Any) -> Tuple[Any, int]:
        """Return plain JSON data with every string cleaned and its secrets hidden, and how many
        were.

        Under a key that looks secret the whole string goes; in a list `--token` hides what follows
        it. Numbers that JSON does not have become their names: nan, inf, -inf.
        """
        return self._data(data, 0)

    def has_nothing_in(self, columns: Iterable[Tuple[str, Sequence[Any]]]) -> bool:
        """Say whether `data` would return everything in these columns as it is; each has a name and
        the values that stand under it. False also where only a look at each of them can tell.
        """
        plain = self._plain
        fresh: Set[str] = set()
        for name, values in columns:
            kinds = set(map(type, values))
            if kinds <= _UNHIDDEN:
                continue
            if not kinds <= _KEPT:
                return False
            texts = values
            if kinds != {str}:
                # "-" may begin an option, which hides what follows it
                if any(self._list(each, 0) != (each, 0) for each in values if type(each) is list):
                    return False
                if not all(math.isfinite(each) for each in values if type(each) is float):
                    return False
                texts = [each for each in values if type(each) is str]
            if looks_secret(name) and not all(_tells_nothing(name, text) for text in texts if text):
                return False
            unknown = set(texts) - plain
            if any(_random(text.strip("'\"")) for text in unknown) and not _identifies(name):
                return False
            fresh |= unknown
        if fresh:
            text = "\n".join(fresh)
            if clean(text) != text or self.text(text)[1]:
                return False
            if len(plain) + len(fresh) > MOST_SEEN:
                plain.clear()
            plain.update(one for one in fresh if len(one) <= SHORT and not _random(one))
        return True

    def _cleaned(self, text: str) -> Tuple[str, int]:
        harmless = self._seen
        if text in harmless:
            return text, 0
        shown, count = self.text(clean(text))
        if not count and shown == text and len(text) <= SHORT:
            if len(harmless) >= MOST_SEEN:
                harmless.clear()
            harmless.add(text)
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
            if len(data) >= MANY and self._harmless(data):
                return data, 0
            return self._list(data, depth)
        return data, 0

    def _harmless(self, rows: Sequence[Any]) -> bool:
        """Say whether a long list of flat rows holds nothing to hide, by one look at all."""
        texts: List[str] = []
        for row in rows:
            if not isinstance(row, list):
                return False
            for item in row:
                if isinstance(item, str):
                    if item.startswith("-"):
                        return False
                    texts.append(item)
                elif item is not None and not (
                    isinstance(item, (int, float)) and -_LARGEST < item < _LARGEST
                ):
                    return False
        text = "\n".join(texts)
        return clean(text) == text and self.text(text)[1] == 0

    def _named(self, name: str, item: Any, depth: int) -> Tuple[Any, int]:
        held = isinstance(item, str) and item and not _tells_nothing(name, item)
        if held and (looks_secret(name) or (_random(item.strip("'\"")) and not _identifies(name))):
            return self._stand_in(name, item), 1
        return self._data(item, depth + 1)

    def _list(self, data: Any, depth: int) -> Tuple[List[Any], int]:
        hidden: List[Any] = []
        total = 0
        option = before = last = ""
        for item in data:
            word = item if isinstance(item, str) else ""
            shown = self._argument(word, option, last, before) if word else ""
            count = 1
            if not shown:
                shown, count = self._data(item, depth + 1)
            hidden.append(shown)
            total += count
            last = word if len(word) <= SHORT else ""
            before = f"{before[-SHORT:]} {last}"
            takes = word.startswith("-") and "=" not in word and _takes_secret(word)
            option = word.lstrip("-") if takes else ""
        return hidden, total

    def _argument(self, word: str, option: str, last: str, before: str) -> str:
        """Return a word of a command line with its secret hidden, empty where it holds none."""
        if option and not word.startswith("-") and not _tells_nothing(option, word):
            return self._stand_in(option, word)
        if last.startswith("--") and _random(word) and not _identifies(last):
            return self._stand_in(last.lstrip("-"), word)
        if last.startswith("-"):
            alone = _SHORT_ALONE.fullmatch(last)
            at = _password_at(alone[1], word, before) if alone else -1
            return word[:at] + self._stand_in("password", word[at:]) if at >= 0 else ""
        if word.startswith("-p") and _LOGINS.search(before):
            return "-p" + self._stand_in("password", word[2:])
        return ""

    def _stand_in(self, name: str, secret: str) -> str:
        known = self._known.get(secret)
        if known is None and len(secret) >= 12 and _mixed(secret):
            self._learn(name, secret)
        return f"<hidden:{known or name}>"

    # --- text

    def _all(self, text: str, hide: Hide) -> Tuple[str, int]:
        count = 0
        of_texts = (_pem_keys, _tokens, _url_passwords)
        for finder in (self._known_values, *of_texts, self._assignments, self._short_options):
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
                alone = rf"(?<![A-Za-z0-9_]){re.escape(value)}(?![A-Za-z0-9_])"
                text, more = re.subn(alone, hide(name, value).replace("\\", r"\\"), text)
                count += more
        return text, count

    def _assignments(self, text: str, hide: Hide) -> Tuple[str, int]:
        """Hide the values of secret names in NAME=value, "name": "value" and --name value."""
        spans = _random_values(text)
        if any(part in text for part in ("assw", "assp", "assc", "ASSW", "ASSP")):
            spans += _passwords_in_prose(text)
        lowered = text.lower()
        if not any(hint in lowered for hint in _HINTS):
            return self._replaced(text, spans, hide)
        for found in _ASSIGNED.finditer(text):
            name, quote, before, sign, after = found.groups()
            if not looks_secret(name):
                continue
            if text[found.end() : found.end() + 1] in ("(", "[") and (quote or sign == "="):
                spans += _several(text, found.end(), name)
                continue
            span = _value_at(text, found.end())
            if span is not None and _is_value(
                text, name, quote, (before, sign, after), found.start(), span
            ):
                spans.append((*span, name.lstrip("-")))
        for found in _OPTION.finditer(text) if "-" in text else ():
            span = _value_at(text, found.end()) if _takes_secret(found[1]) else None
            if (
                span is not None
                and not text.startswith("-", span[0])
                and not _tells_nothing(found[1], text[span[0] : span[1]])
            ):
                spans.append((*span, found[1]))
        return self._replaced(text, spans, hide)

    def _short_options(self, text: str, hide: Hide) -> Tuple[str, int]:
        """Hide `-u name:PASSWORD`, and the -p of programs for which it is one."""
        spans: List[Tuple[int, int, str]] = []
        for found in _SHORT_OPTION.finditer(text) if _has_short_option(text) else ():
            before = text[max(0, found.start() - SHORT) : found.start()].rpartition("\n")[2]
            if text[found.start(2) - 1] == "p" and not _LOGINS.search(before):
                continue  # -python, -pthread
            at = _password_at(found[1], found[2], before)
            if at >= 0:
                spans.append((found.start(2) + at, found.end(2), "password"))
        return self._replaced(text, spans, hide)

    def _replaced(
        self, text: str, spans: List[Tuple[int, int, str]], hide: Hide
    ) -> Tuple[str, int]:
        if "<hidden:" in text:  # what is hidden already says "password" and "key" as well
            spans = [span for span in spans if not _hidden_already(text, span)]
        return _replace(
            text, spans, lambda name, secret: hide(self._stand_in(name, secret)[8:-1], secret)
        )


def _takes_secret(option: str) -> bool:
    words = option.lstrip("-").lower().replace("_", "-").split("-")
    if words[0] in ("use", "no", "disable", "enable", "with", "without", "skip"):
        return False
    return looks_secret(option.lstrip("-")) or words[-1] in _BRIEF


def _has_short_option(text: str) -> bool:
    return any(option in text for option in ("-p", "-u", "-P", "-U", "-a ", "-w "))


def _password_at(option: str, value: str, before: str) -> int:
    """Return where a short option's value becomes a password, or -1; `before` precedes it."""
    if value.startswith(("-", "<hidden:")) or _tells_nothing("password", value):
        return -1
    if option in ("u", "U", "-user", "-proxy-user"):
        name, _, password = value.partition(":")
        number = _NUMBER.fullmatch(password or "0")
        return -1 if number or password.startswith("/") else len(name) + 1
    if _LOGINS.search(before):
        return 0
    if option != "p" or len(value) < 8 or not _mixed(value) or _SCHEDULERS.search(before):
        return -1
    unit = re.search("[/:]|^[0-9.]+[A-Za-z]{0,2}$", value)
    return 0 if re.search("[A-Za-z]", value) and not unit else -1


def _random_values(text: str) -> List[Tuple[int, int, str]]:
    """Find random values of names that are no identifiers, and "token X was refused"."""
    spans: List[Tuple[int, int, str]] = []
    for found in _CANDIDATE.finditer(text):
        value = found[0]
        if value[0] in "/." or not _mixed(value):
            continue
        random, before = _random(value), text[max(0, found.start() - 80) : found.start()]
        name = _NAME_BEFORE.search(before) if random else None
        option = _OPTION_BEFORE.search(before) if random and not name else None
        if option is not None:
            spans += () if _identifies(option[1]) else ((*found.span(), option[1]),)
        elif name is not None:
            if (name[2] == "=" or name[3].strip() or name[1].isupper()) and not _identifies(
                name[1]
            ):
                spans.append((*found.span(), name[1]))
        elif (noun := _SECRET_BEFORE.search(before)) is not None:
            strong = (
                _STRONG.search(noun[1])
                and re.search("[A-Za-z]", value)
                and not re.search(r"[/.]|^[a-z]+[-_]", value)
            )
            if random or strong:
                spans.append((*found.span(), "secret"))
    return spans


def _passwords_in_prose(text: str) -> List[Tuple[int, int, str]]:
    """Find "the password is X"; what only looks like a word of the sentence stays."""
    spans: List[Tuple[int, int, str]] = []
    for found in _PASSWORD_IN_PROSE.finditer(text):
        group = found.lastindex or 0
        value = found[group]
        if group == 4 and (
            not (found[1] or _mixed(value))
            or _ABOUT_A_PASSWORD.fullmatch(value)
            or value.endswith((":", "="))
        ):
            continue
        if not _tells_nothing("password", value.rstrip(".,;!?)")):
            spans.append((found.start(group), found.end(group), "password"))
    return spans


def _several(text: str, start: int, name: str) -> List[Tuple[int, int, str]]:
    """Find the quoted values of auth=("user", "password"), as far as they stand on one line."""
    inside = _SEVERAL.match(text, start)
    found = _QUOTED.finditer(text, *inside.span(1)) if inside else ()
    return [
        (*item.span(item.lastindex or 0), name)
        for item in found
        if not looks_secret(item[item.lastindex or 0])
    ]


def _hidden_already(text: str, span: Tuple[int, int, str]) -> bool:
    found = _STAND_IN.match(text, max(0, text.rfind("<hidden:", max(0, span[0] - 73), span[1])))
    return found is not None and found.end() > span[0]


def _value_at(text: str, start: int) -> Optional[Tuple[int, int]]:
    found = _VALUE.match(text, start)
    if found is None:
        return None
    group = found.lastindex or 0
    return found.start(group), found.end(group)


def _is_value(
    text: str, name: str, quote: str, sign: Tuple[str, str, str], start: int, span: Tuple[int, int]
) -> bool:
    """Tell a secret from code and prose, such as `token = next(it)` and `invalid token: if`."""
    value = text[span[0] : span[1]]
    if _tells_nothing(name, value) or value == name:
        return False
    if sign[1] == ":" and start and text[start - 1] == "/" and value.startswith("/"):
        return False  # /home/secrets:/opt/lib
    quoted = text[span[0] - 1] in "\"'"
    if not quoted and text[span[1] : span[1] + 1] == "(" and value.isidentifier():
        return False
    if quote or quoted or name.isupper() or _mixed(value):
        return True
    if start and text[start - 1] in "-?&":  # an option, or part of an address
        return True
    before, equals, after = sign
    if (
        _ATTRIBUTE.fullmatch(value)
        or text[span[1] : span[1] + 1] in ("(", "[")
        or (value.isidentifier() and (before or (after and equals == "=")))
    ):
        return False
    return name.lower().endswith(_ALWAYS) or (
        equals == ":" and name.lower() in ("authorization", "cookie", "set-cookie")
    )


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
    for literal, name, pattern, _ in FORMS if _LONG.search(text) or " password " in text else ():
        if literal in text:
            spans += [
                (*found.span(found.lastindex or 0), name)
                for found in compiled(pattern).finditer(text)
                if not (_WITHIN_A_WORD.match(text[max(0, found.start() - 3) : found.start() + 1]))
            ]
    if "earer" in text or "EARER" in text:
        spans += [
            (found.start(1), found.end(1), "bearer")
            for found in _BEARER.finditer(text)
            if _mixed(found[1]) or len(found[1]) >= 16
        ]
    if "ey" in text or "EY" in text:
        spans += [
            (found.start(1), found.end(1), "api-key") for found in _KEY_IN_PROSE.finditer(text)
        ]
    return _replace(text, spans, hide)


def _url_passwords(text: str, hide: Hide) -> Tuple[str, int]:
    """Hide the password of scheme://user:password@host, and a user that is a token."""
    if "://" not in text or "@" not in text:
        return text, 0
    spans: List[Tuple[int, int, str]] = []
    for found in _URL_USER.finditer(text):
        if found[2] and not found[2].startswith("<hidden:"):
            spans.append((found.start(2), found.end(2), "url-password"))
        if _RANDOM_ID.fullmatch(found[1]) and _mixed(found[1]):
            spans.append((found.start(1), found.end(1), "url-user"))
    return _replace(text, spans, hide)
