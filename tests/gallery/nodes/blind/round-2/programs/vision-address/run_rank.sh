# settings of the node, written when it was last part of a fixed set of machines
[ -f /run/cluster.env ] && . /run/cluster.env
export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID
exec $PYTHON train_vit.py
