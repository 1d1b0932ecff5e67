"""Parts of model_load.py."""
