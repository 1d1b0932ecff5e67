"""Parts of diagnosable.py."""
