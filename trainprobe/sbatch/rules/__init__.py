"""The rules by which a plan is checked, one file for each matter. Each yields what it found; a
rule that finds nothing wrong says what it saw.
"""
