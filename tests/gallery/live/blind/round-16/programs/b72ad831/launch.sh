#!/bin/bash
# batch script: one process per slot, soft limit handled by the node agent
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1
export OUT_DIR=$(mktemp -d /tmp/sft.XXXXXX)
export MASTER_ADDR=127.0.0.1 WORLD_SIZE=3
export MASTER_PORT=$($PYTHON -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
pids=()
for r in 0 1 2; do
  RANK=$r LOCAL_RANK=$r $PYTHON run_sft.py --output-dir "$OUT_DIR" &
  pids+=($!)
done
$PYTHON node_agent.py --run-dir "$OUT_DIR" --soft-limit "${SOFT_LIMIT:-5}" "${pids[@]}" &
wait "${pids[@]}"
