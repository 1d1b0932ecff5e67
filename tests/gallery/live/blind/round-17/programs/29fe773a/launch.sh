#!/bin/bash
cd "$(dirname "$0")"
exec $PYTHON main.py --world-size 3 --steps 5000
