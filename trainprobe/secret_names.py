"""What the name beside a value says about it: that it is a secret, that it only identifies
something, or nothing.
"""

from __future__ import annotations

import functools
import re

from trainprobe.secret_services import SERVICES

SHORT = 200
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
ALWAYS = tuple(
    """
    password passwords passwd passphrase secret secrets credential credentials apikey apikeys
    passwort kennwort senha wachtwoord contrasena contraseña motdepasse
    """.split()
)
_ALONE = frozenset(
    {"auth", "authorization", "bearer", "cookie", "cookies", "cred", "creds", "dsn", "jwt", "oauth"}
    | {"passcode", "psk", "pw", "webhook", "webhooks"}
)
# Short words that are a secret's name only behind something that has one: DB_PASS, smtp_pwd,
# GITHUB_PAT.
BRIEF = frozenset({"pass", "pwd", "pat", "sas"})
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
    ingest ingestion integration license licence master openrouter pinecone private replicate
    secret sendgrid service session shared sign signing ssh storage stripe subscription together
    wandb webhook write
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
    path rate size sock stdin stdout timeout ttl type version
    """.split()
)
_TRIVIAL = re.compile(
    "auto|default|disabled|enabled|false|no|none|null|off|on|optional|required|self|true|undefined|unset|yes",
    re.IGNORECASE,
)
_PASSWORD_HASH = re.compile(r"\$[\w-]{1,16}\$")
# Where a secret lies is none. Base64 has no full stop, so that a key is no such path.
_FILE = re.compile(
    r"(?:~|\.{1,2})?/(?:(?:[\w.+@-]{1,255}/){0,32}[\w.+@-]{1,255}"
    r"\.(?:json|ya?ml|toml|ini|cfg|conf|txt|pem|key|crt|cer|p12|pfx|env|token|pub|gpg|netrc|py)"
    r"|(?:run|var|etc|home|root|secrets|mnt|opt|usr|tmp)/(?:[\w.+@-]{1,255}/){0,32}[\w.+@-]{1,255})"
)
_DIGIT = re.compile(r"[0-9]")
NUMBER = re.compile(r"[+-]?[0-9]{1,20}(?:\.[0-9]{0,20})?")


def looks_secret(name: str) -> bool:
    """Say whether a variable, key or option called `name` holds a secret: HF_TOKEN, api-key and
    dbPassword do, tokenizer, KEYBOARD and MASTER_ADDR do not.
    """
    return _named_secret(name) if len(name) <= SHORT else _named_secret.__wrapped__(name)


# What tells one of several secrets from the others: HF_TOKEN_PROD, OPENAI_API_KEY_2.
_WHICH = frozenset(
    """
    backup dev development old new plain prod production raw secure stage staging
    """.split()
)


@functools.lru_cache(maxsize=8192)
def _named_secret(name: str) -> bool:
    words = [word.lower() for word in _WORDS.findall(name)]
    while len(words) > 2 and (words[-1] in _WHICH or (words[-1].isdecimal() and name.isupper())):
        words.pop()
    if not words or words[-1] in _NEUTRAL:
        return False
    for place, word in enumerate(words):
        before = words[place - 1] if place else ""
        if word.endswith(ALWAYS) or word in _ALONE:
            return True
        if before not in ("", "old") and word in BRIEF and words[-1] == word:
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


# Values that nobody gives to what has no secret: hexadecimal digits as long as a key, a UUID, 32
# bytes in base64.
_OF_A_KEY = re.compile(
    r"(?:0x)?[0-9a-f]{32,128}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[A-Za-z0-9+/_-]{43}=",
    re.IGNORECASE,
)
_KEYS_OF_THINGS = _PLAIN_KEYS | frozenset(
    """
    autotune bucket checkpoint compile data dedup etag file fx graph idempotency index kernel
    object pub ref row run s3 shard state task trace
    """.split()
)
_BRIEF_ALONE = frozenset({"pass", "pwd", "pin", "otp"})


@functools.lru_cache(maxsize=8192)
def may_be_secret(name: str) -> bool:
    """Say whether `name` is a secret's where its value looks like one: routing_key, pwd, pass."""
    words = [word.lower() for word in _WORDS.findall(name[:SHORT])]
    before = words[-2] if len(words) > 1 else ""
    return (words[-1:] == ["key"] and bool(before) and before not in _KEYS_OF_THINGS) or (
        words[-1:] != [] and words[-1] in _BRIEF_ALONE and not before
    )


def fits_a_secret(name: str, value: str) -> bool:
    """Say whether `value` makes a secret of what may be one by its name.

    A key has the form of one; a password was chosen by somebody who was told to mix its signs, or
    stands in an address. Folders (`PWD=/home/me`) and counts (`pass: 3`) are neither.
    """
    if name.lower().endswith("key"):
        return _OF_A_KEY.fullmatch(value) is not None
    if name.lower() in ("pin", "otp"):
        return re.fullmatch("[0-9]{4,8}", value) is not None
    return "/" not in value and was_chosen(value)


def was_chosen(value: str) -> bool:
    """Say whether `value` mixes its signs as keys do, and passwords that obey a rule."""
    return len(value) >= 8 and all(re.search(kind, value) for kind in ("[a-z]", "[A-Z]", "[0-9]"))


def tells_nothing(name: str, value: str) -> bool:
    """Say whether `value` is a switch, a number or a place holder rather than a secret."""
    if _TRIVIAL.fullmatch(value) or value.startswith(("<", "$", "*", "%")):
        return not _PASSWORD_HASH.match(value)
    if value[0:1] in ("/", "~", ".") and _FILE.fullmatch(value):
        return True
    return bool(NUMBER.fullmatch(value)) and not re.search(r"(?i)pass|secret", name)


def mixed(value: str) -> bool:
    return len(value) >= 6 and _DIGIT.search(value) is not None


@functools.lru_cache(maxsize=8192)
def identifies(name: str) -> bool:
    """Say whether `name` is that of something that looks random without being a secret."""
    words = [word.lower() for word in _WORDS.findall(name)]
    ends = ("".join(words[-1:]), "".join(words[-2:]))
    return any(end in _IDENTIFIERS for end in ends) or bool(ends[0] in _NEUTRAL)


# What is made, run or released has drawn names as well, at each service.
_MADE = frozenset(
    """
    app artifact branch build dataset dsn event issue job model org organization page project
    release repo repository sample site space span task team user workspace
    """.split()
)


# What protocols, file systems and services number at random, besides what they make.
_PASSING = frozenset(
    """
    batch cache chatcmpl ckpt cmpl conn container file handle instance kernel msg obj object pod
    process req request resp response session shard socket temp thread tmp upload worker
    """.split()
)


def is_of_a_thing(name: str) -> bool:
    """Say whether a random text behind `name_` only tells one thing from others of its kind."""
    words = [word.lower() for word in _WORDS.findall(name)]
    return identifies(name) or words[-1] in _MADE or words[-1] in _PASSING


@functools.lru_cache(maxsize=8192)
def is_of_a_service(name: str) -> bool:
    """Say whether `name` is that of a service whose keys are drawn digits and letters, and not of
    something that the service made.
    """
    words = [word.lower() for word in _WORDS.findall(name)]
    return (
        any(word in SERVICES for word in words) and words[-1] not in _MADE and not identifies(name)
    )


def was_drawn(value: str) -> bool:
    """Say whether `value` can have been drawn from digits and letters, also of one case or
    hexadecimal: a piece of sixteen or more with a digit in it, or many changes from one to the
    other. Names of things have shorter pieces.
    """
    if "/" in value or "." in value or value.startswith("0x") or _UUID.fullmatch(value):
        return False
    kinds = [sign.isdecimal() for sign in value if sign.isalnum()]
    changes = sum(one != other for one, other in zip(kinds, kinds[1:]))
    whole = any(len(piece) >= 16 and mixed(piece) for piece in re.split("[_+~=-]", value))
    return len(set(value)) >= 8 and len(kinds) >= 16 and (whole or changes >= 0.25 * len(kinds))


_UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
