#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 MASTER_ADDR=127.0.0.1 WORLD_SIZE=3
export MASTER_PORT=$($PYTHON -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])')
export TRACK_SOCKET=$(mktemp -u "${TMPDIR:-/tmp}/track-XXXXXX.sock")
trap 'kill $(jobs -p) 2>/dev/null' EXIT TERM INT
$PYTHON tracking_server.py "$TRACK_SOCKET" &
for r in 0 1 2; do
  RANK=$r LOCAL_RANK=$r $PYTHON train.py &
done
wait
