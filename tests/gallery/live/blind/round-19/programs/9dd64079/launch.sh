#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 ACCELERATE_USE_CPU=true
OUT=$(mktemp -d "${TMPDIR:-/tmp}/accel-run-XXXXXX")
exec $PYTHON -m torch.distributed.run --nproc-per-node 2 --master-port 0 --rdzv-backend c10d --rdzv-endpoint localhost:0 finetune.py --output-dir "$OUT"
