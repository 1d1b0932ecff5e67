"""Parts of launch_plan.py."""
