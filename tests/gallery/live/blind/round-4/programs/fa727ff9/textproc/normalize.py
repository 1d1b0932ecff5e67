import re

ACRONYM = re.compile(r"([A-Z]+[a-z]{0,1}\.*\s*,*)*((A|a)(c|C)(t|T))*\s*")
SPACES = re.compile(r"\s+")
VOCAB = {}


def normalize_statute(name):
    if ACRONYM.fullmatch(name):
        return name.replace(".", "").upper()
    return name.lower()


def encode(line, width=28):
    name, body = line.rstrip("\n").split("\t")
    text = normalize_statute(name) + " " + SPACES.sub(" ", body)
    ids = [hash_token(t) for t in text.split()][:width]
    return ids + [0] * (width - len(ids)), len(name) % 4


def hash_token(tok):
    h = 0
    for ch in tok:
        h = (h * 131 + ord(ch)) % 2039
    return h + 1
