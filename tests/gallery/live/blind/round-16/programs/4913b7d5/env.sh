# CPU settings from the tuning guide for the Xeon nodes
export OMP_NUM_THREADS=8
export OMP_PROC_BIND=close
export OMP_PLACES=cores
export GOMP_SPINCOUNT=1000000
export MALLOC_ARENA_MAX=4
export PYTHONUNBUFFERED=1
