# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # names of and for bench/lib.sh
# What a job on a compute node waits for; bench/node_bars.py has the measurements. Needs root.

PACKAGES=(slurm-wlm munge util-linux fuse3 python3 python3-numpy)
BARS=(prolog)

bar_prolog() {
    chmod 755 "$SCRATCH" # jobs are those of an ordinary user
    python_bars node_bars.py
}
