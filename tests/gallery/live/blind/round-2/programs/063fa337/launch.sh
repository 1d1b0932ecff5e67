#!/bin/bash
export OMP_NUM_THREADS=1
PORT=$((20000 + RANDOM % 20000))
export STORE_URL=http://127.0.0.1:$((40000 + RANDOM % 9000))
"$PYTHON" make_shards.py --out bucket --shards 12
"$PYTHON" object_store.py --root bucket --url $STORE_URL > store.log 2>&1 &
sleep 2
"$PYTHON" -m torch.distributed.run --nnodes 1 --nproc-per-node 2 --master-addr 127.0.0.1 --master-port $PORT \
    --log-dir logs --tee 3 train.py --shards 12 --epochs 50
kill %1
