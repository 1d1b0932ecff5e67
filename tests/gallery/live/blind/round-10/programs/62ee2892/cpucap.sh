#!/bin/bash
# cpucap.sh --pid PID --run SEC --rest SEC --window SEC
# Keeps a process below run/(run+rest) of a core for a window of time.
RUN=1 REST=1 WINDOW=60
while [ $# -gt 0 ]; do
    case "$1" in
        --pid) PID=$2 ;;
        --run) RUN=$2 ;;
        --rest) REST=$2 ;;
        --window) WINDOW=$2 ;;
    esac
    shift 2
done
END=$((SECONDS + WINDOW))
echo "cpucap: pid=$PID run=$RUN rest=$REST window=${WINDOW}s"
while kill -0 "$PID" 2>/dev/null; do
    kill -CONT "$PID"
    sleep "$RUN"
    kill -STOP "$PID"
    [ $SECONDS -ge $END ] && break
    sleep "$REST"
done
echo "cpucap: window over for $PID"
