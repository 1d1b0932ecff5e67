#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
PORT=$((20000 + RANDOM % 20000))
mkdir -p samples logs
"$PYTHON" -m http.server --bind 127.0.0.1 --directory samples $PORT > logs/gallery.log 2>&1 &
gallery=$!
sleep 1
"$PYTHON" multi_launch.py --gpus 3 --dist-url 127.0.0.1:$PORT --logdir logs
kill $gallery
