#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 MASTER_ADDR=127.0.0.1 WORLD_SIZE=3
export MASTER_PORT=$($PYTHON -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])')
WORK=$(mktemp -d)
$PYTHON prepare.py --out "$WORK" --shards 12
for r in 0 1 2; do
  RANK=$r LOCAL_RANK=$r $PYTHON -u main.py --data "$WORK" &
done
wait
rm -rf "$WORK"
