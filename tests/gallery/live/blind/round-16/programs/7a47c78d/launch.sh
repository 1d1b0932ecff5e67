#!/bin/bash
cd "$(dirname "$0")"
export MASTER_ADDR=127.0.0.1
export MASTER_PORT=$($PYTHON -c "import socket; s=socket.socket(); s.bind(('127.0.0.1',0)); print(s.getsockname()[1])")
export WORLD_SIZE=2
for r in 0 1; do
  RANK=$r LOCAL_RANK=$r $PYTHON -u -m yesno.train --num-epochs 1500 --num-workers 2 --exp-dir exp/tdnn &
done
wait
