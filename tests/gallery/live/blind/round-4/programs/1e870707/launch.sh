#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1 HF_HOME=$PWD/.hf
PORT=$((20000 + RANDOM % 20000))
"$PYTHON" helpers/board.py out > board.log 2>&1 &
board=$!
( sleep 12; kill -STOP $board ) &
"$PYTHON" -m torch.distributed.run --nproc_per_node=2 --master_addr=127.0.0.1 --master_port=$PORT \
    run_clf.py --output_dir out 2>&1 | tee clf.log
kill -9 $board
