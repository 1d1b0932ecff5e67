# what srun starts on a node
: "${SLURM_STEP_ID:=$BASHPID}"
export MASTER_PORT=$(( 10000 + $(echo -n $SLURM_STEP_ID | tail -c 4 | sed 's/^0*//') ))
export RANK=$SLURM_PROCID LOCAL_RANK=0
echo "node $SLURM_NODEID: WORLD_SIZE=$WORLD_SIZE RANK=$RANK master $MASTER_ADDR"
exec "$PYTHON" -u pretrain.py --model tiny --steps 1000000
