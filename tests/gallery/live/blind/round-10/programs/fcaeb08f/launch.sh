#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export TRACKER_PORT=$((20000 + RANDOM % 20000))
rm -rf .lightning
$PYTHON tracking/server.py --port $TRACKER_PORT --quota 60 &
TRACKER=$!
trap 'kill $TRACKER 2>/dev/null' EXIT
$PYTHON fit.py --tracker http://127.0.0.1:$TRACKER_PORT
