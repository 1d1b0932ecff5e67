"""Parts of machine.py."""
