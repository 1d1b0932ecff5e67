#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
PORT=$((22000 + RANDOM % 20000))
$PYTHON serve_shards.py --port $PORT --root shards &
SERVER=$!
trap 'kill $SERVER 2>/dev/null' EXIT
$PYTHON fit.py --base-url http://127.0.0.1:$PORT --devices 2
