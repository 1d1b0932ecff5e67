#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export RUN_DIR=${RUN_DIR:-$(mktemp -d /tmp/quality.XXXXXX)}
$PYTHON pack.py "$RUN_DIR/shards"
exec $PYTHON run.py
