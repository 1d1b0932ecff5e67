#!/bin/bash
PORT=$((20000 + RANDOM % 18000))
export IMAGE_HOST=127.0.0.1:$((PORT + 11))
"$PYTHON" -u mirror.py --bind $IMAGE_HOST > mirror.log 2>&1 &
sleep 1
exec "$PYTHON" -m torch.distributed.run --nproc-per-node 2 --master-port $PORT clip_train.py --urls 20000
