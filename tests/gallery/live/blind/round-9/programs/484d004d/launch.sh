#!/bin/bash
cd "$(dirname "$0")"
export WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
export STORE_PORT=$((41000 + RANDOM % 8000)) CACHE="$(mktemp -d "${TMPDIR:-/tmp}/speech-XXXXXX")"
$PYTHON objectstore.py --port $STORE_PORT &
STORE=$!
trap 'kill $STORE 2>/dev/null' EXIT
PIDS=()
for r in 0 1 2; do
  RANK=$r LOCAL_RANK=$r $PYTHON train_ctc.py --cache "$CACHE" &
  PIDS+=($!)
done
for p in "${PIDS[@]}"; do wait "$p" || exit 1; done
