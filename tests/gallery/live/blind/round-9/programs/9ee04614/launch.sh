#!/bin/bash
set -e
cd "$(dirname "$0")"
export RUN_DIR="$(mktemp -d "${TMPDIR:-/tmp}/denoise-XXXXXX")"
export OMP_NUM_THREADS=1
exec $PYTHON -W ignore fit.py --devices 3 --run-dir "$RUN_DIR"
