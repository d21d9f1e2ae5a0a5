# What prolog and node-mount share: the peers of a job (mount-scripts/peers). Sourced.
# shellcheck shell=bash

# peers_option OPTIONS SIZE: the size that peers= in OPTIONS names, else SIZE; fails if there is no such
# option.
peers_option() {
    [[ ,$1, =~ ,peers(=([0-9][^,]*))?, ]] || return 1
    echo "${BASH_REMATCH[2]:-$2}"
}

# without_peers OPTIONS: all others.
without_peers() { sed -E 's/,peers(=[0-9][^,]*)?,/,/; s/^,|,$//g' <<<",$1,"; }

# peers_origin SOURCE OPTIONS: where its data comes from, if that can be told.
peers_origin() {
    local url=$1
    if [[ $1 == s3://* ]]; then
        [[ ,$2, =~ ,endpoint(_url)?=([^,]*), ]] || return 0
        url=${BASH_REMATCH[2]}
    fi
    if [[ $url =~ ^(https?://[A-Za-z0-9.-]+(:[0-9]+)?)(/|$) ]]; then echo "${BASH_REMATCH[1]}"; fi
}

# peers_arguments SIZE SOURCE OPTIONS: of `peers up`, one a line; none if the job has one node.
peers_arguments() {
    local nodes origin
    nodes=$(scontrol show hostnames "${SLURM_JOB_NODELIST:-${SLURM_NODELIST:-}}" | paste -s -d ,)
    [[ $nodes == *,* ]] || return 0
    printf '%s\n' --nodes "$nodes" --size "$1" --job "$SLURM_JOB_ID"
    origin=$(peers_origin "$2" "$3")
    [[ -z $origin ]] || printf '%s\n' --origin "$origin"
    [[ ! ,$3, =~ ,(ca|ca_cert|ca_bundle)=([^,]*), ]] || printf '%s\n' --ca "${BASH_REMATCH[2]}"
}
