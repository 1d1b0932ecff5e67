#!/bin/bash
export OMP_NUM_THREADS=1
"$PYTHON" -u trainSpeakerNet.py --port $((20000 + RANDOM % 20000)) --ngpu 3
