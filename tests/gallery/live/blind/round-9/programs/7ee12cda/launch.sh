#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
export CKPT="$(mktemp -d "${TMPDIR:-/tmp}/graph-XXXXXX")"
exec $PYTHON -W ignore run.py --nproc 2 --ckpt "$CKPT"
