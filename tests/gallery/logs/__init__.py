"""Logs with known truth: `cases/` holds what the tool is given, `answers.yaml` what is true.

A case is a folder with a name drawn without regard to its content. What stands in its folder
`given/` is handed over as words of the command:
`env*` as `--env FILE`, `size*` (`nodes=2 gpus=8`) as `--nodes` and `--gpus`. Recorded cases come
from `record.py`; a written one is added by hand, with made-up hosts, scripts and numbers, and a
line in `answers.yaml`; `python -m tests.gallery.logs.score --only NAME --misses` judges it.
"""
