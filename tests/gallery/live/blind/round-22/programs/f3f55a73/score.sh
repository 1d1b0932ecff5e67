#!/bin/bash
# usage: score.sh predictions.tsv workdir
# short captions: surface overlap only; longer ones also need the paraphrase table
here="$(cd "$(dirname "$0")" && pwd)"
preds="$1"; work="$2"; sock="$work/paraphrase.sock"
longest=$(awk -F'\t' '{n=split($2,a," "); if(n>m)m=n} END{print m+0}' "$preds")
extra=""
if [ "$longest" -gt 9 ]; then
  if [ ! -S "$sock" ]; then
    $PYTHON "$here/paraphrase_server.py" "$sock" &
    for _ in $(seq 100); do [ -S "$sock" ] && break; sleep 0.1; done
  fi
  extra="$sock"
fi
$PYTHON "$here/overlap_score.py" "$preds" $extra
