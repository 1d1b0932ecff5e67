#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
PORT=$($PYTHON -c "import socket; s=socket.socket(); s.bind(('127.0.0.1',0)); print(s.getsockname()[1])")
$PYTHON store_gateway.py --root shards --port $PORT > /dev/null 2>&1 &
GW=$!
trap 'kill $GW 2>/dev/null' EXIT
$PYTHON -m torch.distributed.run --nproc-per-node 3 --master-port 0 \
  --rdzv-backend c10d --rdzv-endpoint localhost:0 \
  pretrain.py --shards "http://127.0.0.1:$PORT/clips-{000000..000029}.tar"
