#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
WORK=$(mktemp -d)
$PYTHON tracking_server.py --port-file $WORK/port &
TRACKER=$!
trap "kill $TRACKER" EXIT
while [ ! -s $WORK/port ]; do sleep 0.2; done
$PYTHON -m torch.distributed.run --nproc-per-node 2 --master-port 0 --rdzv-backend c10d \
  --rdzv-endpoint localhost:0 train.py --tracking-uri http://127.0.0.1:$(cat $WORK/port) --root $WORK
