#!/bin/bash
cd "$(dirname "$0")"
exec $PYTHON -u supervisor.py --nproc 2 --snapshot-secs 3
