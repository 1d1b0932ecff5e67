#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export RUN_DIR=${RUN_DIR:-$(mktemp -d /tmp/sensor.XXXXXX)}
exec $PYTHON fit.py
