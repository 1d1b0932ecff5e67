#!/bin/bash
cd "$(dirname "$0")"
exec $PYTHON main.py --world 3
