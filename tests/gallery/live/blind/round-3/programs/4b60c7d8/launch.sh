#!/bin/bash
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=3 OMP_NUM_THREADS=1
mkdir -p run logs
: > run/pids

start() { "$@" & echo $! >> run/pids; }

start env RANK=0 "$PYTHON" -u train.py > logs/rank0.log 2>&1
start env RANK=1 "$PYTHON" -u train.py > logs/rank1.log 2>&1
start "$PYTHON" -u warm_cache.py > logs/warm_cache.log 2>&1
start env RANK=2 "$PYTHON" -u train.py > logs/rank2.log 2>&1

"$PYTHON" -u share_agent.py --pids run/pids --log logs/rank0.log --calendar reservations.json > logs/share_agent.log 2>&1 &
wait
