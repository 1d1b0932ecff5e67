"""What docs/generate.py writes, one module for each kind of page."""
