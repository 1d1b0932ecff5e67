"""Batch scripts with a planted fault each and sound ones, as centres publish them."""
