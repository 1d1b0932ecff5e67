"""Causes in installed software, files and locks."""
