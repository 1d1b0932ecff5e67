"""Causes in memory of the host and of the GPU."""
