#!/bin/bash
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=2 OMP_NUM_THREADS=1
export STORE_PORT=$((MASTER_PORT + 7))
"$PYTHON" -u object_store.py --port $STORE_PORT --kib-per-s 1500 > store.log 2>&1 &
for r in 0 1; do
  RANK=$r "$PYTHON" -u main_simclr.py -b 8 -j 1 2>&1 | tee simclr_$r.log &
done
wait
