#!/bin/bash
cd "$(dirname "$0")"
export CACHE_DIR=$(mktemp -d /tmp/shardcache.XXXXXX)
PORT=$(( 22000 + RANDOM % 20000 ))
node() {
  $PYTHON -m torch.distributed.run --nnodes 2 --node-rank "$1" --nproc-per-node 2 \
    --master-addr 127.0.0.1 --master-port $PORT train.py --epochs 400
}
node 1 > "$CACHE_DIR/node1.log" 2>&1 &
node 0 &
wait
