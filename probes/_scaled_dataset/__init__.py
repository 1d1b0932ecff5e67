"""Parts of scaled_dataset.py."""
