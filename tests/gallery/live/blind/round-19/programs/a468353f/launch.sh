#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export RUN_DIR=$(mktemp -d /tmp/keypoints-XXXXXX)
exec $PYTHON fit.py --devices 2 --epochs 400
