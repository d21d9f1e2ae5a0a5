# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # names of and for bench/lib.sh
# What a job on compute nodes waits for, and what its nodes ask of the origin when they are peers; bench/node_bars.py
# and bench/peers_bars.py have the measurements. Needs root.

PACKAGES=(slurm-wlm munge nginx-light curl iproute2 util-linux fuse3 python3 python3-numpy)
BARS=(prolog peers)

bar_prolog() {
    chmod 755 "$SCRATCH" # jobs are those of an ordinary user
    python_bars node_bars.py
}

bar_peers() {
    python_bars peers_bars.py
}
