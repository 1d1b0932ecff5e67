#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
export OUT_DIR=$(mktemp -d /tmp/clm.XXXXXX)
export MASTER_ADDR=127.0.0.1 WORLD_SIZE=2
export MASTER_PORT=$($PYTHON -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
for r in 0 1; do
  RANK=$r LOCAL_RANK=$r $PYTHON run_clm.py --output-dir "$OUT_DIR" &
done
wait
