#!/bin/bash
cd "$(dirname "$0")"
exec $PYTHON -u dist_runner.py --num-workers 3 --env PYTHONUNBUFFERED=1 -- train.py --conf conf/conformer_tiny.json
