"""The ladder: finds the probes, plans the rungs, launches their ranks, watches them, and writes
down what it saw.

Nothing is imported here: who only reads a probe's header does not pay for the climb.
"""
