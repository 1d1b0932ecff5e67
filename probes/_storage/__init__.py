"""Parts of storage.py."""
