"""Runs that died at full size, as small programs: each one broken and mended, diagnosed by the
public command line.
"""
