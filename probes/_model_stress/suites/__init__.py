"""The suites, one file each: `run(tested, findings)` measures and compares with thresholds; it
never decides which fault the numbers show.
"""
