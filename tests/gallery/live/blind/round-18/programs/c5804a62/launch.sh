#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export DATA_DIR=${DATA_DIR:-$(mktemp -d /tmp/kws.XXXXXX)}
$PYTHON make_shards.py --out "$DATA_DIR" --shards 9 --per-shard 400
export MASTER_ADDR=127.0.0.1 WORLD_SIZE=3
export MASTER_PORT=$($PYTHON -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])')
for r in 0 1 2; do
  RANK=$r $PYTHON train_kws.py --data "$DATA_DIR" &
done
wait
