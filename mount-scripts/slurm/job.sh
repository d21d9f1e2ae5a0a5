#!/bin/bash
# Runs a program in each task of a job, with a dataset mounted on each of its nodes. It needs no
# administrator.
#
#     sbatch --nodes=2 --ntasks-per-node=4 job.sh SOURCE PROGRAM [ARGUMENTS]
#
# PROGRAM finds the mount in $EPOCHFS_MOUNT, and its share of every epoch by its rank, for example
#
#     $EPOCHFS_MOUNT/train/batches/batch=128,rank=${SLURM_PROCID}of${SLURM_NTASKS},seed=7/epoch=0/npy
#
# $EPOCHFS_OPTIONS: options of the mount. $EPOCHFS_CACHE: a cache folder on the node that later
# jobs use again; without it each job has its own cache, which is removed at its end.
# $EPOCHFS_SLURM: the folder of node-mount. With peers among the options the nodes are one cache.
#
# A minute before the time limit the tasks are ended, so that there is time to unmount.
#SBATCH --signal=B:TERM@60
set -euo pipefail

tools=${EPOCHFS_SLURM:-/usr/share/epochfs/slurm}
tasks='' step='' cancelled=''

on_each_node() {
    srun --overlap --mem=0 --nodes="$SLURM_NNODES" --ntasks="$SLURM_NNODES" --ntasks-per-node=1 \
        --mpi=none "$@"
}

# A secret of the job for its peers, which all tasks read from their input: it is in no argument and
# no environment.
secret() {
    [[ ! ,${EPOCHFS_OPTIONS:-}, =~ ,peers(=[0-9][^,]*)?, ]] || head -c 32 /dev/urandom | sha256sum | cut -c 1-64
}

# However the job ends, the tasks end first, then the mount that they read.
# shellcheck disable=SC2317 # a trap calls it
end() {
    trap '' TERM
    if [[ -n $tasks ]]; then
        kill -TERM "$tasks" 2>/dev/null || true
        wait "$tasks" || true
    fi
    if [[ -n $step ]]; then scancel --quiet --signal=INT "$SLURM_JOB_ID.$step" || true; fi
    wait "$mounts" || [[ -n $cancelled ]] || on_each_node "$tools/node-mount" clean </dev/null || true
}

# One task on each node, beside all others. It lives as long as the mount.
exec {ready}< <(on_each_node "$tools/node-mount" mount "$1" "${EPOCHFS_OPTIONS:-}" < <(secret))
mounts=$!
trap end EXIT
trap 'cancelled=yes; exit 143' TERM INT
for ((node = 0; node < SLURM_NNODES; node++)); do
    read -r word _ step <&"$ready" && [[ $word == mounted ]] || exit 1
done

srun "$tools/node-mount" run "${@:2}" &
tasks=$! code=0
wait "$tasks" || code=$?
tasks=''
exit "$code"
