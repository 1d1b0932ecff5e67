#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000))
"$PYTHON" train_ddp.py --world 2 --layers 4 --compile --backend aot_eager 2>&1 | tee train_ddp.log
