import json
import re

RESPONSE = re.compile(
    r"^(?:<think>\n?(?P<reasoning>.*?)\n?</think>\n*)?"
    r"(?P<calls>(?:\s*<tool_call>\s*(?:[^<]+\s*)+</tool_call>\s*)*)"
    r"(?P<content>[^<]*)$",
    re.DOTALL,
)


def parse_response(text):
    m = RESPONSE.match(text)
    if m is None:
        return {"content": text, "tool_calls": []}
    calls = []
    for body in re.findall(r"<tool_call>\s*([^<]+?)\s*</tool_call>", m.group("calls")):
        try:
            calls.append(json.loads(body))
        except ValueError:
            pass
    return {"content": m.group("content").strip(), "tool_calls": calls}
