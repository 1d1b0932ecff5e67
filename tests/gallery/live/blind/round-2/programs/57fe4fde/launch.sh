#!/bin/bash
export OMP_NUM_THREADS=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=2
export DATA_URL=http://127.0.0.1:$((40000 + RANDOM % 9000))
"$PYTHON" -u cdn.py $DATA_URL > cdn.log 2>&1 &
sleep 2
for R in 0 1; do
    RANK=$R LOCAL_RANK=$R "$PYTHON" -u stream_train.py > rank$R.log 2>&1 &
done
wait
