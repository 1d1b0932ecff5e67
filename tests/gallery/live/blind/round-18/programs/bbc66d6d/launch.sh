#!/bin/bash
cd "$(dirname "$0")"
export STATE_DIR=$(mktemp -d /tmp/phases.XXXXXX)
PORT=$(( 23000 + RANDOM % 20000 ))
for node in 1 0; do
  $PYTHON -m torch.distributed.run --nnodes 2 --node-rank $node --nproc-per-node 1 \
    --master-addr 127.0.0.1 --master-port $PORT --max-restarts 0 train.py > "$STATE_DIR/node$node.log" 2>&1 &
done
wait
