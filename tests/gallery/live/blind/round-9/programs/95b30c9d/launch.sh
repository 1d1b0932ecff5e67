#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
export FEATURE_PORT=$((41000 + RANDOM % 8000)) RUN_DIR="$(mktemp -d "${TMPDIR:-/tmp}/ctr-XXXXXX")"
$PYTHON feature_server.py --port $FEATURE_PORT > "$RUN_DIR/server.log" 2>&1 &
SERVER=$!
$PYTHON dashboard.py --port $FEATURE_PORT --out "$RUN_DIR/stats.csv" > "$RUN_DIR/dashboard.log" 2>&1 &
DASH=$!
trap 'kill $SERVER $DASH 2>/dev/null' EXIT
$PYTHON -m torch.distributed.run --nproc-per-node 2 --master-port 0 \
  --rdzv-backend c10d --rdzv-endpoint localhost:0 train_ctr.py
