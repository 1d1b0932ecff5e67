import re


class PunctuationParagraphs:
    """Drops paragraphs made of punctuation and emoji only."""

    PATTERN = re.compile(
        "^([\\s!-/:-@\\[-`{-~]|["
        "\U0001F300-\U0001F5FF"
        "\U0001F600-\U0001F64F"
        "\U0001F680-\U0001F6FF"
        "\u2700-\u27BF"
        "]+)+$")

    def __call__(self, text):
        return "\n".join(p for p in text.split("\n") if not self.PATTERN.match(p))


class Whitespace:
    def __call__(self, text):
        return re.sub(r"[ \t]+", " ", text).strip()


class Lower:
    def __call__(self, text):
        return text.lower()
