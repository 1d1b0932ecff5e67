import re

SUBS = [("an ", ""), ("a ", ""), (".$", "$"), ("\\$", ""), (r"\ ", ""), ("mbox", "text"), ("\\text{s}", "")]
UNITS = ["square", "ways", "integers", "dollars", "mph", "inches", "hours", "km", "units", "points", "feet"]

NUMBER_LIST = re.compile(r"^\s*((?:\d+\s*,?\s*)+)\s*(?:and\s+\d+)?\s*$")
BOXED = re.compile(r"\\boxed\{([^{}]*)\}")


def normalize_final_answer(answer):
    answer = answer.split("=")[-1]
    for before, after in SUBS:
        answer = answer.replace(before, after)
    for unit in UNITS:
        answer = answer.replace(unit, "")
    m = NUMBER_LIST.match(answer)
    if m:
        return ",".join(re.findall(r"\d+", m.group(1)))
    return answer.strip().lower()


def compute_score(completion, target):
    m = BOXED.search(completion)
    pred = m.group(1) if m else completion[-200:]
    return 1.0 if normalize_final_answer(pred) == normalize_final_answer(target) else 0.0
