# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # names of and for bench/lib.sh
# Nodes of a job that start with empty caches, with peers, a site cache, and without; bench/nodes.py has the
# measurements. Needs root. --quick: smaller data; --write-docs: also writes docs/bench/nodes.md and .svg.

PACKAGES=(nginx-light curl iproute2 util-linux fuse3 python3 python3-numpy)
BARS=(nodes)

bar_nodes() { python_bars nodes.py "${FLAGS[@]}"; }
