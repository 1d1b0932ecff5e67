#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 MASTER_ADDR=127.0.0.1 WORLD_SIZE=2
export MASTER_PORT=$($PYTHON -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])')
export SHARD_DIR=$(mktemp -d /tmp/shards-XXXXXX)
for r in 0 1; do
  RANK=$r LOCAL_RANK=$r $PYTHON -u main.py --passes 100000 &
done
wait
