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
from trainprobe.secret_lines import hide_over_lines
from trainprobe.secret_names import (
    ALWAYS,
    BRIEF,
    NUMBER,
    SHORT,
    fits_a_secret,
    identifies,
    is_of_a_service,
    is_of_a_thing,
    looks_secret,
    may_be_secret,
    mixed,
    tells_nothing,
    was_chosen,
    was_drawn,
)

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)|["
    r" -/]{1,4}[0-~]|[0-Z\\^_`-~])"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f\ud800-\udfff]")

_PATH = re.compile(r"(?:~|\.{1,2})?(?:/[\w.+@:-]{1,255}){2,64}/?")
_ATTRIBUTE = re.compile(r"[A-Za-z_]\w{0,64}(?:\.[A-Za-z_]\w{0,64}){1,8}")

_ASSIGNED = re.compile(
    r"(?<![A-Za-z0-9_])([A-Za-z_][\w.\-]{0,63})(\\{0,7}[\"']?)([ \t]{0,40})"
    r"(:=|=>|[=!]={1,2}(?=[ \t]?[\"'`])|[=:])([ \t]{0,40})"
)
# if ("X" == password)
_COMPARED = re.compile(
    r"[\"'`]([^\s\"'`]{6,256})[\"'`] ?[=!]={1,2} ?([A-Za-z_][\w.]{0,63})(?![\w.(\[])"
)
# {"name": "DB_PASSWORD", "value": "X"}, <add key="Password" value="X"/>
_NAMED_VALUE = re.compile(
    r"(?:name|key|id|property)[\"']?[:=] ?[\"']([A-Za-z_][\w.-]{0,63})[\"'],?[ \t]{1,4}"
    r"[\"']?(?:value|content)[\"']?[:=] ?[\"']([^\"'\n]{1,4096})[\"']"
)
_OPTION = re.compile(r"(?<![\w-])--?([A-Za-z][\w.\-]{0,63})[ \t]{1,4}")
# A value that no quote encloses ends at a separator, unless what follows it can only be more of the
# value.
_VALUE = re.compile(
    r"(?:(?:Basic|Bearer|Digest|Token)[ \t]{1,4}"
    r"|(?:0x[0-9a-f]{1,16}|<hidden:[\w.-]{1,64}>)[ \t]{1,2}(?=[\"']))?(?:[bru]{0,2}(?:"
    r"\\{1,7}\"([^\"\\\n]{1,4096})|\\{1,7}'([^'\\\n]{1,4096})|\"((?:[^\"\\\n]|\\.){1,4096})|'((?:[^'\\\n]"
    r"|\\.){1,4096})|`([^`\n]{1,4096})"
    r")|([^\s\"'`&;,<>()\[\]{}\\]{1,2048}(?:[&;,](?![\w.-]{0,64}=)[^\s\"'&;,<>()\[\]{}\\]{1,512}){0,4}))",
    re.IGNORECASE,
)
_SCHEME_VALUE = re.compile(r"[ \t]{1,4}([^\s\"'<>]{8,4096})")
_AN_OPTION = re.compile(r"--?[A-Za-z][\w.-]{0,63}")
_SEVERAL = re.compile(r"[\[(]([^\])\n]{1,4096})")
_QUOTED = re.compile(r"\"([^\"\n]{1,1024})\"|'([^'\n]{1,1024})'")
_HINTS = tuple(
    """
    token pass pw secret cred key auth cookie dsn x-amz-signature hook jwt bearer psk _pat _sas
    otp kennwort senha wachtwoord contrase
    """.split()
)

_PEM = re.compile(r"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY( BLOCK)?-----")
_PEM_BODY = re.compile(r"[A-Za-z0-9+/=\s\\:,-]{0,65536}")
_URL_USER = re.compile(r"://([^\s/:@\"'<>]{0,256})(?::([^\s/\"'<>]{0,256}))?@")
# One that was cut off before its host; behind the colon of a host stands a port.
_URL_CUT = re.compile(r"://[^\s/:@\"'<>]{0,256}:([^\s/@\"'<>]{6,256})\Z")
_BEARER = re.compile(r"bearer[ \t]{1,4}([A-Za-z0-9._~+/-]{8,4096}={0,4})", re.IGNORECASE)
# A key in a sentence ("API key 0a1b… is not valid"): hexadecimal digits alone are a hash as often,
# so the word must stand before them.
_KEY_IN_PROSE = re.compile(
    r"(?i:\b(?:api|access|secret)[ _-]?key)\b[^\n0-9A-Za-z]{0,4}(?:[A-Za-z]{1,12}"
    r" ){0,3}['\"(]?([0-9a-f]{32,128})\b"
)
# "the password is X": X is any word but one that says something about the password.
_PASSWORD_IN_PROSE = re.compile(
    r"(?i:\bpass(?:word|wd|phrase|code))\b[\"']?(?: for [\w.@'\"-]{1,64})?(?:("
    r" (?:is|was)(?: now)?:?| (?:re)?set to| changed to| ?(?:->|=>|:=)"
    r"|[.,;]? \(?[Dd]efault(?:s to| is|:))|:)?"
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
# "recovery codes: X Y", "PIN code: X"
_CODES = re.compile(
    r"\b(?:recovery|backup|verification|one-time|security|2fa|mfa|otp|pin)[ _-]codes?"
    r"(?: is| are)?[:=]? {0,2}((?:[\w-]{0,15}\d[\w-]{0,15}(?:, ?| |(?![\w-]))){1,16})",
    re.IGNORECASE,
)
# smtp.login("me", "X"), HTTPBasicAuth('me', 'X'): the second text; of a client or a cipher the
# first, where it was drawn at random.
_LOGIN = re.compile(
    r"(?i:login|logon|auth|authenticate|credentials?)\([\w=]{0,16}(?:\"[^\"\n]{0,256}\"|'[^'\n]{0,256}')"
    r", ?[\w=]{0,16}(?:\"([^\"\n]{1,256})\"|'([^'\n]{1,256})')"
)
# keyring.set_password("service", "me", "X"): the last text.
_SET = re.compile(
    r"(?i:set|put|add|update|create|store|write)\w{0,32}"
    r"(?i:password|passwd|secret|token|credential)s?"
    r"\((?:[\w=.]{1,64}, ?|\"[^\"\n]{0,256}\", ?|'[^'\n]{0,256}', ?){0,4}[\w=]{0,16}"
    r"(?:\"([^\"\n]{1,256})\"|'([^'\n]{1,256})')\)"
)
# Names and values that a blank or a table parts: aws_secret_access_key X, or DB_PASS in a column.
_PARTED = re.compile(
    r"(?<![\w.-])([A-Za-z][A-Za-z0-9]{0,31}(?:_[A-Za-z0-9]{1,31}){1,8})"
    r"(?:[ \t]{1,4}|[ \t]{0,40}[|\u2502][ \t]{0,40})"
    r"([^\s|\u2502\"'()=:,;\[\]<>]{8,512})(?=[\s|\u2502]|$)"
)
_ELEMENT = re.compile(r"<([A-Za-z_][\w.:-]{0,63})>([^<>\n]{1,4096})</")
_MADE_WITH = re.compile(
    r"(?i:client|fernet|cipher|session|api)\([\w=]{0,16}[\"']([A-Za-z0-9+/_-]{24,256}={0,2})[\"']"
)
# SecretStr('X'), Password("X")
_HELD = re.compile(
    r"\b(?:[A-Z][a-z]{1,16}){0,3}(?:Secret(?:Str|Bytes|Value)?|Password|ApiKey|Credential|Token)"
    r"\((?:\w{1,16}=)?[bru]?[\"']([^\"'\n]{8,4096})[\"']"
)
_CALLED = ("('", '("', "(b'", '(b"')
# As part of an address in an address: %3Fpassword%3DX%26, %3A%2F%2Fme%3AX%40host.
_ENCODED = re.compile(
    r"(?:%[0-9A-Fa-f]{2}|(?<![\w.%-]))([A-Za-z_][\w.-]{0,63})%3[Dd]"
    r"((?:[^\s%&\"'<>]|%(?!26|3[Bb]|2[0-27]|0[AaDd])[0-9A-Fa-f]{2}){1,2048})"
)
_ENCODED_USER = re.compile(
    r"%3[Aa]%2[Ff]%2[Ff](?:[^\s%/\"'<>]|%(?!2[Ff]|40|3[Aa])[0-9A-Fa-f]{2}){0,256}%3[Aa]"
    r"((?:[^\s%/\"'<>]|%(?!2[Ff]|40)[0-9A-Fa-f]{2}){1,256})%40"
)
_SECRET_BEFORE = re.compile(
    r"\b((?i:(?:api|access|secret|auth|account|license)["
    r" _-]?(?:key|token)|secret|credential|bearer)|(?i:token|key|pat|jwt))s?\b"
    r"[^\n0-9A-Za-z]{0,4}(?:[A-Za-z]{1,12}:? ){0,3}[`'\"(<]?\Z"
)
_HEX = re.compile("[0-9a-f]{16,512}", re.IGNORECASE)
_STRONG = re.compile("(?i)secret|credential|bearer|[ _-]")
_RANDOM = re.compile(r"[A-Za-z0-9_+/.~-]{20,512}={0,2}")
_CANDIDATE = re.compile(r"[A-Za-z0-9_+/.~-]{16,512}={0,2}")
_LONG = re.compile(r"[A-Za-z0-9_.%~+-]{16}")  # no form has less in one piece
# Kubernetes and exceptions name what happened so: FailedToRetrieveImagePullSecret.
_REASON = re.compile(r"(?:[A-Z][a-z]{1,16}){3,8}")
_NAME_BEFORE = re.compile(r"([A-Za-z_][\w.-]{0,63})[\"']?[ ]?(:=|=>|=|:)([\"'` ]{0,2})\Z")
# The last name before a value: algolia_index = "X", mixpanel X, spotify key - 'X'.
_WORD_BEFORE = re.compile(
    r"([A-Za-z_][\w.-]{0,63})[\"']?(?: (?:(?:api|access|secret) )?(?:key|token|secret))?"
    r"(?:[ \t]{0,4}(?::=|=>|->|={1,3}|:|-)[ \t]{0,4}|[ \t]{1,2})"
    r"[\"'`{(]?\Z"
)
# Services of today begin their tokens with a short name of their own.
_PREFIXED = re.compile(
    r"([a-z][a-z0-9]{1,9}(?:_[a-z][a-z0-9]{0,9}){0,2})"
    r"(?:_|-(?=.{32}))([A-Za-z0-9_-]{24,512}={0,2})"
)
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
_WITHIN_A_WORD = re.compile(r"\w\w\Z")
_ESCAPE_BEFORE = re.compile(r"(?:\\[nrt]|%[0-9A-Fa-f]{2}|\[[0-9;]{0,8}m).\Z", re.DOTALL)
_BREAKS = (re.compile(r"(\n)"), re.compile(r"(\\n)"))  # also as a source line writes them
_STAND_IN = re.compile(r"<hidden:[\w.-]{1,64}>")
_RANDOM_ID = re.compile(r"[A-Za-z0-9_-]{16,}")
MOST_DEPTH = 100
MOST_SEEN = 20_000
MANY = 20  # rows from which on they are looked at together first
_REST = r"(?:[.-]?[A-Za-z0-9_][A-Za-z0-9_-]{7,512}){0,8}"  # of a token, behind its first part
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
    if max(map(len, pieces), default=0) < 16 or len(set(whole)) < 12:
        return False
    kinds = [
        "".join("0" if sign.isdecimal() else "A" if sign.isupper() else "a" for sign in piece)
        for piece in pieces
    ]
    counts = ["".join(kinds).count(kind) for kind in "0Aa"]
    changes = sum(item != following for piece in kinds for item, following in zip(piece, piece[1:]))
    return counts[0] >= 2 and min(counts) >= 1 and changes >= 0.38 * (len(whole) - len(pieces))


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
                looks_secret(name) and not tells_nothing(name, value) and not _PATH.fullmatch(value)
            ):  # where a secret lies is none
                self._learn(name, value)
                for line in value.split("\n"):
                    if len(line) >= 20 and not line.startswith("-----"):
                        self._learn(name, line)

    def _learn(self, name: str, value: str) -> None:
        # A short plain word would be hidden all over the place; next to its name it is hidden
        # anyway.
        # A key is told by its frame, of which all keys have the same words.
        if value.startswith("-----"):
            return
        if value not in self._known and (len(value) >= 8 or mixed(value)):
            known = {**self._known, value: name}
            self._known = dict(sorted(known.items(), key=lambda each: -len(each[0])))
            # a new one: another thread may still add to the old what was looked at with less
            # knowledge
            self._seen = set()
            self._plain = set()

    def text(self, text: str) -> Tuple[str, int]:
        """Return `text` with secrets hidden, and how many were."""
        text, over_lines = _pem_keys(text, _stand_in_for)
        for breaks in _BREAKS if "\n" in text or "\\n" in text else ():
            parts = breaks.split(text)
            lines = self.lines(parts[::2])
            over_lines += sum(one != other for one, other in zip(parts[::2], lines))
            parts[::2] = lines
            text = "".join(parts)
        text, count = self._all(text, _stand_in_for)
        return text, count + over_lines

    def lines(self, lines: Sequence[str]) -> List[str]:
        """Return as many lines, without what is a secret only together with the lines around: the
        rest is left to `text`.
        """
        return hide_over_lines(lines, lambda text: self._all(text, _stand_in_for)[0])

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
            if len(values) == 1 and self._same_as_before(name, values[0]):
                continue
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
            if looks_secret(name) and not all(tells_nothing(name, text) for text in texts if text):
                return False
            unknown = set(texts) - plain
            if any(_random(text.strip("'\"")) for text in unknown) and not identifies(name):
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

    def _same_as_before(self, name: str, value: Any) -> bool:
        """Whether a value has nothing to hide under this name, told without a look at its text."""
        if value.__class__ is str:
            return value in self._plain and not looks_secret(name)
        return value.__class__ in _UNHIDDEN or (value.__class__ is list and not value)

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
        held = isinstance(item, str) and item and not tells_nothing(name, item)
        if held and (looks_secret(name) or (_random(item.strip("'\"")) and not identifies(name))):
            return self._stand_in(name, item), 1
        return self._data(item, depth + 1)

    def _list(self, data: Any, depth: int) -> Tuple[List[Any], int]:
        hidden: List[Any] = []
        total = 0
        if len(data) > 1 and all(isinstance(item, str) for item in data):
            cleaned = [clean(item) for item in data]
            data = self.lines(cleaned)
            total += sum(one != other for one, other in zip(cleaned, data))
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
            takes = _AN_OPTION.fullmatch(word) is not None and _takes_secret(word)
            option = word.lstrip("-") if takes else ""
        return hidden, total

    def _argument(self, word: str, option: str, last: str, before: str) -> str:
        """Return a word of a command line with its secret hidden, empty where it holds none."""
        if option and not word.startswith("-") and not tells_nothing(option, word):
            return self._stand_in(option, word)
        if _AN_OPTION.fullmatch(last) and last[1] == "-" and _random(word) and not identifies(last):
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
        if known is None and len(secret) >= 12 and mixed(secret):
            self._learn(name, secret)
        return f"<hidden:{known or name}>"

    # --- text

    def _all(self, text: str, hide: Hide) -> Tuple[str, int]:
        count = 0
        of_texts = (_tokens, _url_passwords, _encoded)
        for finder in (
            *(_pem_keys, self._known_values, *of_texts),
            *(self._assignments, self._short_options),
        ):
            text, more = finder(text, hide)
            count += more
        return text, count

    def _known_values(self, text: str, hide: Hide) -> Tuple[str, int]:
        count = 0
        for value, name in self._known.items():
            if value not in text:
                continue
            pattern = re.escape(value)
            if len(value) >= 8:  # what was learned from a text that had been cut is a part of it
                pattern += _REST
            else:  # short: only as a word of its own
                pattern = rf"(?<![A-Za-z0-9_]){pattern}(?![A-Za-z0-9_])"
            shown = functools.partial(_hide_match, hide, name)
            text, more = re.subn(pattern, shown, text)
            count += more
        return text, count

    def _assignments(self, text: str, hide: Hide) -> Tuple[str, int]:
        """Hide the values of secret names in NAME=value, "name": "value" and --name value."""
        spans = _random_values(text)
        if any(part in text for part in ("assw", "assp", "assc", "ASSW", "ASSP")):
            spans += _passwords_in_prose(text)
        if any(opening in text for opening in _CALLED):
            spans += _of_calls(text)
        lowered = text.lower()
        if "code" in lowered:
            spans += [(*found.span(1), "code") for found in _CODES.finditer(text)]
        if not any(hint in lowered for hint in _HINTS):
            return self._replaced(text, spans, hide)
        for found in _ASSIGNED.finditer(text):
            name, quote, before, sign, after = found.groups()
            if not looks_secret(name):
                if may_be_secret(name):
                    spans += _fitting(text, name, found.end())
                continue
            compares = sign[0] in "=!" and sign[-1:] == "=" and len(sign) > 1
            sign = sign if len(sign) == 1 else "="
            if text[found.end() : found.end() + 1] in ("(", "[") and (quote or sign == "="):
                spans += _several(text, found.end(), name)
                continue
            span = _value_at(text, found.end())
            if span is not None and name.lower().endswith("authorization"):
                span = _behind_the_scheme(text, span)
            if (
                span is not None
                and _is_value(text, name, quote, (before, sign, after), found.start(), span)
                and (not compares or mixed(text[span[0] : span[1]]))  # else a word to choose by
            ):
                spans.append((*span, name.lstrip("-")))
        spans += _compared(text) + _of_named(text)
        spans += [
            (*found.span(2), found[1])
            for pattern in (_PARTED if "_" in text else None, _ELEMENT if "</" in text else None)
            for found in (pattern.finditer(text) if pattern else ())
            if looks_secret(found[1])
            and not tells_nothing(found[1], found[2])
            and (pattern is _ELEMENT or was_chosen(found[2]))
        ]
        for found in _OPTION.finditer(text) if "-" in text else ():
            span = _value_at(text, found.end()) if _takes_secret(found[1]) else None
            if (
                span is not None
                and not text.startswith("-", span[0])
                and not tells_nothing(found[1], text[span[0] : span[1]])
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


def _stand_in_for(name: str, _: str) -> str:
    return f"<hidden:{name}>"


def _takes_secret(option: str) -> bool:
    words = option.lstrip("-").lower().replace("_", "-").split("-")
    if words[0] in ("use", "no", "disable", "enable", "with", "without", "skip"):
        return False
    return looks_secret(option.lstrip("-")) or words[-1] in BRIEF


def _has_short_option(text: str) -> bool:
    return any(option in text for option in ("-p", "-u", "-P", "-U", "-a ", "-w "))


def _password_at(option: str, value: str, before: str) -> int:
    """Return where a short option's value becomes a password, or -1; `before` precedes it."""
    if value.startswith(("-", "<hidden:")) or tells_nothing("password", value):
        return -1
    if option in ("u", "U", "-user", "-proxy-user"):
        name, _, password = value.partition("," if re.search(r"\blftp\b", before) else ":")
        number = NUMBER.fullmatch(password or "0")
        return -1 if number or password.startswith("/") else len(name) + 1
    if _LOGINS.search(before):
        return 0
    if option != "p" or len(value) < 8 or not mixed(value) or _SCHEDULERS.search(before):
        return -1
    unit = re.search("[/:]|^[0-9.]+[A-Za-z]{0,2}$", value)
    return 0 if re.search("[A-Za-z]", value) and not unit else -1


def _random_values(text: str) -> List[Tuple[int, int, str]]:
    """Find random values of names that are no identifiers, and "token X was refused"."""
    spans: List[Tuple[int, int, str]] = []
    for found in _CANDIDATE.finditer(text):
        value = found[0]
        if value[0] in "/." or not mixed(value):
            continue
        prefixed = _PREFIXED.fullmatch(value)
        if prefixed and _random(prefixed[2]) and not is_of_a_thing(prefixed[1]):
            spans.append((*found.span(), "token"))
            continue
        random, before = _random(value), text[max(0, found.start() - 80) : found.start()]
        name = _NAME_BEFORE.search(before) if random else None
        option = _OPTION_BEFORE.search(before) if random and not name else None
        word = _WORD_BEFORE.search(before) if random or was_drawn(value) else None
        if option is not None:
            spans += () if identifies(option[1]) else ((*found.span(), option[1]),)
        elif name is not None and (name[2] != ":" or name[3].strip() or name[1].isupper()):
            spans += () if identifies(name[1]) else ((*found.span(), name[1]),)
        elif word is not None and is_of_a_service(word[1]):
            spans.append((*found.span(), word[1]))
        elif (noun := _SECRET_BEFORE.search(before)) is not None and (
            random or _is_secret_of(noun[1], value)
        ):
            spans.append((*found.span(), "secret"))
    return spans


def _is_secret_of(noun: str, value: str) -> bool:
    """Say whether a sentence about an API key or a token calls so a value that is not random."""
    if noun.lower() == "token":
        return len(value) >= 24 and was_drawn(value) and not _HEX.fullmatch(value)
    return (
        _STRONG.search(noun) is not None
        and re.search("[A-Za-z]", value) is not None
        and not re.search(r"[/.]|^[a-z]+[-_]", value)
    )


def _passwords_in_prose(text: str) -> List[Tuple[int, int, str]]:
    """Find "the password is X"; what only looks like a word of the sentence stays."""
    spans: List[Tuple[int, int, str]] = []
    for found in _PASSWORD_IN_PROSE.finditer(text):
        group = found.lastindex or 0
        value = found[group]
        if group == 4 and (
            not (found[1] or mixed(value))
            or _ABOUT_A_PASSWORD.fullmatch(value)
            or value.endswith((":", "="))
        ):
            continue
        if not tells_nothing("password", value.rstrip(".,;!?)")):
            spans.append((found.start(group), found.end(group), "password"))
    return spans


def _of_calls(text: str) -> List[Tuple[int, int, str]]:
    spans = [
        (*found.span(found.lastindex or 0), "password")
        for pattern in (_LOGIN, _SET)
        for found in pattern.finditer(text)
        if not tells_nothing("password", found[found.lastindex or 0])
    ]
    spans += [
        (*found.span(1), "secret")
        for found in _HELD.finditer(text)
        if _random(found[1]) or was_chosen(found[1])
    ]
    return spans + [
        (*found.span(1), "key")
        for found in _MADE_WITH.finditer(text)
        if _random(found[1]) or fits_a_secret("key", found[1])
    ]


def _compared(text: str) -> List[Tuple[int, int, str]]:
    return [
        (*found.span(1), found[2])
        for found in (_COMPARED.finditer(text) if "==" in text or "!=" in text else ())
        if looks_secret(found[2]) and mixed(found[1])
    ]


def _of_named(text: str) -> List[Tuple[int, int, str]]:
    return [
        (*found.span(2), found[1])
        for found in (_NAMED_VALUE.finditer(text) if "value" in text or "content" in text else ())
        if looks_secret(found[1]) and not tells_nothing(found[1], found[2])
    ]


def _fitting(text: str, name: str, start: int) -> List[Tuple[int, int, str]]:
    span = _value_at(text, start)
    return [(*span, name)] if span and fits_a_secret(name, text[span[0] : span[1]]) else []


def _behind_the_scheme(text: str, span: Tuple[int, int]) -> Tuple[int, int]:
    """Return where the value stands behind the name of a scheme: Splunk X, ApiKey X."""
    value, following = text[span[0] : span[1]], _SCHEME_VALUE.match(text, span[1])
    if following is None or not value.replace("-", "").isalnum() or not mixed(following[1]):
        return span
    return following.span(1)


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
    if tells_nothing(name, value) or value == name:
        return False
    if sign[1] == ":" and start and text[start - 1] == "/" and value.startswith("/"):
        return False  # /home/secrets:/opt/lib
    quoted = text[span[0] - 1] in "\"'"
    if not quoted and text[span[1] : span[1] + 1] == "(" and value.isidentifier():
        return False
    # JSON has no blank before its colon: volume "creds" : secret "wandb" not found
    if (quote and not sign[0]) or quoted or name.isupper() or mixed(value):
        return True
    if start and text[start - 1] in "-?&":  # an option, or part of an address
        return True
    before, equals, after = sign
    if equals == ":" and value.isalpha() and _REASON.fullmatch(name):
        return False
    if (
        _ATTRIBUTE.fullmatch(value)
        or text[span[1] : span[1] + 1] in ("(", "[")
        or (value.isidentifier() and (before or (after and equals == "=")))
    ):
        return False
    return name.lower().endswith(ALWAYS) or (
        equals == ":" and name.lower() in ("authorization", "cookie", "set-cookie")
    )


def _hide_match(hide: Hide, name: str, found: re.Match[str]) -> str:
    return hide(name, found[0])


def _replace(text: str, spans: List[Tuple[int, int, str]], hide: Hide) -> Tuple[str, int]:
    pieces: List[str] = []
    at = count = 0
    for start, end, name in sorted(spans, key=lambda span: (span[0], -span[1])):
        begin = max(start, at)  # of two that overlap, what the first leaves goes as well
        if begin >= end:
            continue
        pieces += (text[at:begin], hide(name, text[begin:end]))
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
                if not _within_a_word(text, found.start())
            ]
    if "earer" in text or "EARER" in text:
        spans += [
            (found.start(1), found.end(1), "bearer")
            for found in _BEARER.finditer(text)
            if mixed(found[1]) or len(found[1]) >= 16
        ]
    if "ey" in text or "EY" in text:
        spans += [
            (found.start(1), found.end(1), "api-key") for found in _KEY_IN_PROSE.finditer(text)
        ]
    return _replace(text, spans, hide)


def _within_a_word(text: str, at: int) -> bool:
    before = text[max(0, at - 11) : at + 1]
    return _WITHIN_A_WORD.search(before) is not None and not _ESCAPE_BEFORE.search(before)


def _url_passwords(text: str, hide: Hide) -> Tuple[str, int]:
    """Hide the password of scheme://user:password@host, and a user that is a token."""
    if "://" not in text:
        return text, 0
    cut = _URL_CUT.search(text, max(0, len(text) - 600))
    spans: List[Tuple[int, int, str]] = []
    if cut is not None and was_chosen(cut[1]):
        spans.append((*cut.span(1), "url-password"))
    if "@" not in text:
        return _replace(text, spans, hide)
    for found in _URL_USER.finditer(text):
        if found[2] and not found[2].startswith("<hidden:"):
            spans.append((found.start(2), found.end(2), "url-password"))
        if _RANDOM_ID.fullmatch(found[1]) and mixed(found[1]):
            spans.append((found.start(1), found.end(1), "url-user"))
    return _replace(text, spans, hide)


def _encoded(text: str, hide: Hide) -> Tuple[str, int]:
    """Hide what stands in an address that is part of another one."""
    if "%3D" not in text and "%3A" not in text and "%3d" not in text and "%3a" not in text:
        return text, 0
    spans = [(*found.span(1), "url-password") for found in _ENCODED_USER.finditer(text)]
    spans += [
        (*found.span(2), found[1])
        for found in _ENCODED.finditer(text)
        if not found[2].startswith("<")
        and (
            (looks_secret(found[1]) and not tells_nothing(found[1], found[2]))
            or (may_be_secret(found[1]) and fits_a_secret(found[1], found[2]))
        )
    ]
    return _replace(text, spans, hide)
