"""The suites, one file each: `run(tested, findings)` compares with thresholds and does not
diagnose.
"""
