"""Causes in the model itself: shapes, masks, precision, weights that are saved, loaded and
shared.
"""
