"""What several probes share. A package `_NAME` beside it belongs to the probe `NAME.py` alone."""
