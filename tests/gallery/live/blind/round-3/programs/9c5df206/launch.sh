#!/bin/bash
#SBATCH --signal=B:USR1@90
#SBATCH --time=08:00:00
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=3 OMP_NUM_THREADS=1
mkdir -p logs
PIDS=()
for R in 0 1 2; do
  RANK=$R "$PYTHON" -u -m pocket.train > logs/train-$R.log 2>&1 &
  PIDS+=($!)
done

on_usr1() {
  echo "$(date +%T) got USR1 from the scheduler, asking the job to checkpoint"
  kill -USR1 "$PIDS"
}
trap on_usr1 USR1

# no scheduler on the workstation: the batch shell signals itself some time after the first progress line
( until [ -s logs/train-2.log ]; do sleep 1; done; sleep "${TIME_LIMIT_S:-8}"; kill -USR1 $$ ) &
while true; do
  wait "${PIDS[@]}" && break
  kill -0 "${PIDS[@]}" 2>/dev/null || break
done
