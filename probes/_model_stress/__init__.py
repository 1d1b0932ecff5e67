"""Parts of model_stress.py."""
