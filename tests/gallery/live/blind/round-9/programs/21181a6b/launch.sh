#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
OUT=$(mktemp -d /tmp/pre2d.XXXXXX)
trap 'kill $PID 2>/dev/null; wait $PID; rm -rf "$OUT"; exit' TERM INT
$PYTHON -m torch.distributed.run --nproc-per-node 4 --master-port 0 --rdzv-backend c10d --rdzv-endpoint localhost:0 train.py --tp 2 --out "$OUT" &
PID=$!
wait $PID
