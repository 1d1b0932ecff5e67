"""Number theory problems with test cases; a completion is one of several ways to write the body."""
import random

BODIES = {
    "gcd": [
        "def f(a, b):\n    while b:\n        a, b = b, a % b\n    return a\n",
        "def f(a, b):\n    while a != b:\n        if a > b:\n            a -= b\n        else:\n            b -= a\n    return a\n",
        "def f(a, b):\n    return max(d for d in range(1, max(a, b) + 1) if a % d == 0 and b % d == 0)\n",
        "def f(a, b):\n    return f(b, a % b) if b else a\n",
    ],
    "power": [
        "def f(a, b):\n    r = 1\n    for _ in range(b):\n        r *= a\n    return r\n",
        "def f(a, b):\n    return a * b\n",
        "def f(a, b):\n    return a ** b\n",
        "def f(a, b):\n    return pow(a, b)\n",
    ],
}


def _gcd(a, b):
    return _gcd(b, a % b) if b else a


def load(n, seed=3):
    rng = random.Random(seed)
    problems = []
    for i in range(n):
        kind = "gcd" if i % 2 else "power"
        if kind == "gcd":
            tests = [(rng.randint(1, 400), rng.randint(1, 400)) for _ in range(6)]
            if i > 80 and i % 12 == 7:
                tests.append((rng.randint(1, 400), 0))
            cases = [(a, b, _gcd(a, b)) for a, b in tests]
        else:
            tests = [(rng.randint(2, 9), rng.randint(1, 6)) for _ in range(6)]
            cases = [(a, b, a ** b) for a, b in tests]
        problems.append((kind, cases))
    return problems
