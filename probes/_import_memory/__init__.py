"""Parts of import_memory.py."""
