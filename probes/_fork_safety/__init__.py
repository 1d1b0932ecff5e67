"""Parts of fork_safety.py."""
