# shellcheck shell=bash
# Completion of epochfs(1) in bash. tests/mount/cli/case-completion.py holds it against --help.

# The command line up to the cursor, in the words that were typed: bash divides them at = and :, too.
# Sets words; the last one is to be completed.
_epochfs_split() {
    local rest=${COMP_LINE:0:COMP_POINT} blank part i
    words=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        blank=${rest%%[^[:blank:]]*}
        rest=${rest#"$blank"}
        part=${COMP_WORDS[i]}
        ((i < COMP_CWORD)) || part=$rest
        if [[ -n $blank || $i == 0 ]]; then
            words+=("$part")
        else
            words[-1]+=$part
        fi
        rest=${rest#"$part"}
    done
}

# _epochfs_offer FRONT WORD...: those FRONT + WORD that $cur begins. readline replaces only what
# stands behind the last place where it divides words.
_epochfs_offer() {
    local front=$1 breaks='' known='' word
    shift
    [[ $COMP_WORDBREAKS != *:* ]] || breaks+=:
    [[ $COMP_WORDBREAKS != *=* ]] || breaks+='='
    [[ -z $breaks ]] || known=${cur%"${cur##*["$breaks"]}"}
    for word; do
        word=$front$word
        [[ $word != "$cur"* ]] || COMPREPLY+=("${word#"$known"}")
    done
}

# Offers options with commas between them.
_epochfs_options() {
    local before=${cur%"${cur##*,}"} last=${cur##*,} values=()
    compopt -o nospace
    case $last in
    cache_dir=*) compopt -o dirnames ;;
    ca_cert=* | layout=* | peers_secret=*) compopt +o nospace -o default ;;
    cache_size=*) values=(50% 80% 10G 100G) ;;
    evict=*) values=(never after_use plan) ;;
    passthrough=*) values=(auto on off) ;;
    prefetch=*) values=(on off) ;;
    version=*) values=(both etag time) ;;
    block_size=*) values=(auto 4K 8K 16K 32K 64K 128K 256K) ;;
    index_base=*) values=(asis 1 auto) ;;
    format=*) values=(idx npy npz safetensors dmatrix libfm libsvm kaldi mindrecord parquet recordio tar tfrecord tokens jsonl csv cifar cifar10 cifar100 zip mds) ;;
    csv_dtype=*) values=(float32 float64) ;;
    csv_delimiter=*) values=(comma tab semicolon space) ;;
    csv_header=*) values=(auto yes no) ;;
    across_docs=*) values=(yes no) ;;
    megatron_unit=*) values=(document sequence) ;;
    token_dtype=*) values=(uint8 uint16 uint32 int32 int64 raw:uint16) ;;
    image_size=*) values=(224x224 256x256 64x64) ;;
    audio=*) values=(16000:mono 16000 native) ;;
    normalize=*) values=(imagenet half clip) ;;
    decoded_cache=*) values=(10G 100G) ;;
    on_error=*) values=(fail skip zero) ;;
    pair=*) values=(auto off) ;;
    kaldi=*) values=(o p s cs no np ns ncs) ;;
    kaldi_type=*)
        values=(matrix vector packed int float double bool int-vector int-vectors int-pairs
            float-pairs posterior gauss-posterior token tokens wave)
        ;;
    peers=*) values=(http://127.0.0.1:) ;;
    log_level=*) values=(error warning info debug) ;;
    plan=*) values=(batch=) ;;
    *=*) ;;
    *)
        _epochfs_offer "$before" "${_epochfs_option_names[@]}"
        return
        ;;
    esac
    _epochfs_offer "$before${last%%=*}=" "${values[@]}"
}

_epochfs_option_names=(plan= subset= mix= epochs= readahead= passthrough= cache_dir= cache_size= evict= prefetch= block_size= transfers= bwlimit=
    retry_timeout= timeout= version= files= ca_cert= endpoint_url= region= profile= no_sign_request requester_pays virtual_host peers= peers_secret= label= layout= one_hot=
    transpose index_base= format= label_column= weight_column= csv_dtype= csv_delimiter= csv_header= csv_comment= seq_len= stride= across_docs= pack= pad= megatron_unit= token_dtype= image_size= audio= augment= normalize= decoded_cache= on_error= pair= kaldi= kaldi_type= join= allow_outside
    allow_commands command_timeout= log_level= allow_other)

# Offers folders where an epochfs is mounted. They are not looked at: one may not answer.
_epochfs_mountpoints() {
    local line point fields
    while IFS= read -r line; do
        [[ $line == *' - fuse.epochfs '* ]] || continue
        read -ra fields <<<"$line"
        # shellcheck disable=SC2059 # the kernel writes blanks as \040
        printf -v point "${fields[4]//%/%%}"
        printf -v point %q "$point"
        _epochfs_offer '' "$point"
    done </proc/self/mountinfo
}

# Offers what stands at a place that is no flag: the n-th, from 0 on.
_epochfs_place() {
    case $command$1 in
    mount0 | info0 | plan0 | stage0 | index0 | cat0 | export0) compopt -o default ;;
    mount1 | export2) compopt -o dirnames ;;
    umount0 | status0 | audit0) _epochfs_mountpoints ;;
    cache0) _epochfs_offer '' list verify prune ;;
    cache1) compopt -o dirnames ;;
    esac
}

# Offers the flags of $command.
_epochfs_flags() {
    local flags=(--help)
    case $command in
    mount) flags+=(-f -o) ;;
    info) flags+=(--json --check --layout -o) ;;
    plan) flags+=(--json --dry-run --assume-rate= --compute= --epochs= --nodes= --node-rate= --origin-rate= --dead= --bytes= --each -o) ;;
    stage) flags+=(--verify --progress -o) ;;
    index) flags+=(--output --progress -o) ;;
    status) flags+=(--json --watch --html=) ;;
    audit) flags+=(--epoch= --all-ranks --progress) ;;
    cat) flags+=(-o) ;;
    export) flags+=(--dataset= --epoch= --encoding= -o) ;;
    cache)
        case ${words[2]} in
        list) flags+=(--json) ;;
        verify) flags+=(--progress) ;;
        prune) flags+=(--older-than --max-size --all --dry-run) ;;
        esac
        ;;
    esac
    _epochfs_offer '' "${flags[@]}"
    [[ ${COMPREPLY[*]} != *= ]] || compopt -o nospace
}

_epochfs() {
    local words cur before command place=0 i
    _epochfs_split
    cur=${words[-1]}
    before=${words[-2]:-}
    command=${words[1]}
    COMPREPLY=()
    if ((${#words[@]} == 2)); then
        _epochfs_offer '' mount umount info plan stage index status audit cat export cache --help --version
        return
    fi
    for ((i = 2; i < ${#words[@]} - 1; i++)); do
        case ${words[i]} in
        -o | --output | --older-than | --max-size | --to) ((i++)) ;;
        -*) ;;
        *) ((place++)) ;;
        esac
    done
    case $before:$cur in
    -o:*) _epochfs_options ;;
    --older-than:* | --max-size:* | --to:*) ;;
    --output:*) compopt -o dirnames ;;
    *:-*) _epochfs_flags ;;
    *) _epochfs_place "$place" ;;
    esac
}

complete -F _epochfs epochfs
