#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
export LOG_DIR="$(mktemp -d "${TMPDIR:-/tmp}/policy-XXXXXX")"
exec $PYTHON main.py --world 2 --log-dir "$LOG_DIR"
