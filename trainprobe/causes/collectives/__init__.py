"""Causes in what the ranks do together: who enters which collective, and who does not."""
