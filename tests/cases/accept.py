"""Makes today's reports the expected ones: `python -m tests.cases.accept [NAME…]`. Read the diff
that git then shows.
"""

from __future__ import annotations

import sys

from tests.cases.expectation import accept, names


def main() -> int:
    wrong = 0
    for name in sys.argv[1:] or names():
        try:
            print(f"{name}: {'changed' if accept(name) else 'as it was'}")
        except ValueError as error:
            wrong += 1
            print(f"{error}; not accepted")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
