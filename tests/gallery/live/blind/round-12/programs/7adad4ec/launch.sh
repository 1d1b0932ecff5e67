#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 RUN_DIR=$(mktemp -d)
exec $PYTHON fit.py
