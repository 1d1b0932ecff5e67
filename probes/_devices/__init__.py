"""Parts of devices.py."""
