#!/bin/bash
# per-process resident limit for shared boxes: oomguard.sh PARENT_PID LIMIT_MB
parent=$1
limit=$(( $2 * 1024 ))
while kill -0 "$parent" 2>/dev/null; do
  ps --ppid "$parent" -o pid=,rss= | while read -r pid rss; do
    if [ "$rss" -gt "$limit" ]; then
      echo "$(date +%T) pid $pid rss ${rss}kB > ${limit}kB: SIGKILL"
      kill -9 "$pid"
    fi
  done
  sleep 0.5
done
