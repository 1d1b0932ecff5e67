#!/bin/bash
# notify.sh RUN_DIR PID...
run=$1; shift
until [ -e "$run/ready.0" ] && [ -e "$run/ready.1" ] && [ -e "$run/ready.2" ]; do sleep 1; done
sleep 8
while kill -0 "$1" 2>/dev/null; do
    kill -USR1 "$@"
    sleep 3
done
