#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 MASTER_ADDR=127.0.0.1 WORLD_SIZE=3
export MASTER_PORT=$($PYTHON -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
mkdir -p runs && rm -f runs/tracker.port
$PYTHON -m tracker.server --port-file runs/tracker.port --out runs/events.jsonl &
for rank in 0 1 2; do
  RANK=$rank LOCAL_RANK=$rank $PYTHON train.py &
done
wait
