#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
WORK=$(mktemp -d "${TMPDIR:-/tmp}/samples-XXXXXX")
exec $PYTHON train.py --db "$WORK/samples.db" --archive "$WORK/archive" --nproc 3
