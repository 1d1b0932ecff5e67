"""Parts of host.py."""
