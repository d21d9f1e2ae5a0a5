#!/bin/bash
# needs: environment-modules lua5.3
# mount-scripts/modules: what `module load epochfs` sets, and that `module unload` takes it back.
# shellcheck source=../lib.sh
source "$CASES/lib.sh"
modules=$CASES/../../mount-scripts/modules
root=$PRIVATE/root
local=$PRIVATE/local
mkdir -p "$root/bin" "$root/share/man/man1" "$local" "$PRIVATE/modulefiles"
ln -s "$EPOCHFS" "$root/bin/epochfs"
touch "$root/share/man/man1/epochfs.1"
unset EPOCHFS_CACHE MANPATH

# The site adapts two lines.
sed "s|^set root .*|set root $root|; s|^set local .*|set local $local|" "$modules/epochfs" \
    >"$PRIVATE/modulefiles/epochfs"
sed "s|^local root = .*|local root = \"$root\"|; s|^local node_local = .*|local node_local = \"$local\"|" \
    "$modules/epochfs.lua" >"$PRIVATE/epochfs.lua"

tcl_module() {
    local init=/usr/share/modules/init/bash
    [ -e "$init" ] || {
        echo "without environment modules (package environment-modules)"
        return
    }
    # As in a user's shell, which does not stop at errors.
    cat >"$PRIVATE/session" <<'END'
source "$1"
module use "$2"
before=$PATH
module load epochfs
echo "epochfs: $(command -v epochfs)"
echo "man: $(man -w epochfs 2>/dev/null) and $(man -w ls >/dev/null 2>&1 || echo no) others"
echo "cache: $EPOCHFS_CACHE"
module unload epochfs
[ "$PATH" = "$before" ] && echo "path: as before"
echo "left: ${EPOCHFS_CACHE-nothing}"
export EPOCHFS_CACHE=/own
module load epochfs
echo "own: $EPOCHFS_CACHE"
module unload epochfs
echo "own, after: $EPOCHFS_CACHE"
module help epochfs 2>&1
module whatis epochfs 2>&1
END
    expect 0 bash --norc "$PRIVATE/session" "$init" "$PRIVATE/modulefiles"
    says "epochfs: $root/bin/epochfs" "cache: $local/epochfs-$(id -un)" "path: as before" \
        "left: nothing" "own: /own" "own, after: /own" "machine-learning datasets as files"
    ! grep -i error <<<"$OUT" || die "errors: $OUT"
}

# lmod's functions, which print their arguments.
lua_module() {
    local lua
    lua=$(command -v lua5.3 || command -v lua5.4 || command -v lua) || {
        echo "without Lua (package lua5.3)"
        return
    }
    cat >"$PRIVATE/lmod.lua" <<'END'
for _, name in ipairs({"help", "whatis", "conflict", "prepend_path", "append_path", "setenv"}) do
    _G[name] = function(...) print(name, ...) end
end
function pathJoin(a, b) return a .. "/" .. b end
dofile(arg[1])
END
    expect 0 env USER=me "$lua" "$PRIVATE/lmod.lua" "$PRIVATE/epochfs.lua"
    says $'prepend_path\tPATH\t'"$root/bin" $'prepend_path\tMANPATH\t'"$root/share/man" \
        $'append_path\tMANPATH\t' $'setenv\tEPOCHFS_CACHE\t'"$local/epochfs-me" $'conflict\tepochfs'
    expect 0 env EPOCHFS_CACHE=/own "$lua" "$PRIVATE/lmod.lua" "$PRIVATE/epochfs.lua"
    [[ $OUT != *setenv* ]] || die "a cache of the user's own is left alone: $OUT"
}

tcl_module
lua_module
