import re

ENTITY = re.compile(r"\b([A-Z][a-z]*(?:[A-Z][a-z]*|[A-Z]{2,})+|[A-Z][a-z]{1,19})\b")
SPACE = re.compile(r"\s+")


def normalize(line):
    line = ENTITY.sub(lambda m: m.group(0).lower(), line)
    return SPACE.sub(" ", line).strip()


def encode(line, length=32):
    ids = [hash_byte(t) for t in normalize(line).split(" ")][:length]
    return ids + [0] * (length - len(ids))


def hash_byte(t):
    h = 7
    for c in t:
        h = (h * 31 + ord(c)) % 509
    return h + 1
