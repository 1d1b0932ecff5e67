#!/bin/bash
dir=$1
SOFT_LIMIT_KB=$((560 * 1024))
while sleep 3; do
  for f in "$dir"/worker.*.pid; do
    pid=$(cat "$f")
    rss=$(awk '/VmRSS/{print $2}' /proc/$pid/status 2>/dev/null) || continue
    state=$(awk '/^State/{print $2}' /proc/$pid/status)
    if [ "${rss:-0}" -gt $SOFT_LIMIT_KB ] && [ "$state" != T ]; then
      echo "$(date +%T) pid $pid rss ${rss}K over limit, pausing"
      kill -STOP "$pid"
    elif [ "$state" = T ] && [ "$rss" -lt $((SOFT_LIMIT_KB * 8 / 10)) ]; then
      echo "$(date +%T) pid $pid below limit, resuming"
      kill -CONT "$pid"
    fi
  done
done
