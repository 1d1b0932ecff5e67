"""Causes in the model: shapes, masks, precision, weights that are saved, loaded or shared."""
