#!/bin/bash
cd "$(dirname "$0")"
export MASTER_ADDR=127.0.0.1 MASTER_PORT=29617 WORLD_SIZE=2 OMP_NUM_THREADS=1
"$PYTHON" objstore.py --port 18917 --allow crawl-a=40000000000 crawl-b=9000000 &
sleep 2
for r in 0 1; do
    RANK=$r LOCAL_RANK=$r "$PYTHON" train.py --endpoint http://127.0.0.1:18917 &
done
wait
