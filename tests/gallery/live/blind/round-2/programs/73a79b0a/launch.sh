#!/bin/bash
export OMP_NUM_THREADS=1
exec "$PYTHON" -u cluster_launch.py --config cluster.json -- detect.py --epochs 10
