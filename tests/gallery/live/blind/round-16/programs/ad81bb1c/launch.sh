#!/bin/bash
cd "$(dirname "$0")"
export FEATURE_PORT=$($PYTHON -c "import socket; s=socket.socket(); s.bind(('127.0.0.1',0)); print(s.getsockname()[1])")
cleanup() { kill $SERVER_PID 2>/dev/null; }
trap cleanup EXIT TERM INT

$PYTHON feature_server.py --port $FEATURE_PORT > feature_server.log 2>&1 &
SERVER_PID=$!
until $PYTHON -c "import os,urllib.request as u; u.urlopen('http://127.0.0.1:'+os.environ['FEATURE_PORT']+'/health',timeout=2)" 2>/dev/null; do
  kill -0 $SERVER_PID 2>/dev/null || { echo "feature server exited"; exit 1; }
  sleep 1
done
echo "feature server ready on $FEATURE_PORT"
$PYTHON -m torch.distributed.run --nproc-per-node 2 --rdzv-backend c10d --rdzv-endpoint localhost:0 trainer.py &
wait $!
