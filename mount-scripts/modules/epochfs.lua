-- epochfs for Lmod; the file epochfs beside it is the same for environment modules (Tcl). Copy it to
-- the site's modulefiles, and adapt two lines:

local root = "/usr/local"
local node_local = "/var/tmp"

-- root: the folder of `cmake --install` (bin/epochfs, share/man). node_local: a folder on a disk of
-- each node, with the same path on all nodes, because batch jobs take the environment with them.

help([[epochfs mounts machine-learning datasets as files.
The cache is EPOCHFS_CACHE, on a disk of the node.]])
whatis("epochfs: machine-learning datasets as files")
conflict("epochfs")

prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("MANPATH", pathJoin(root, "share/man"))
append_path("MANPATH", "")

-- A user who has set EPOCHFS_CACHE keeps that value, before and after.
local user = os.getenv("USER") or os.getenv("LOGNAME") or "user"
local cache = pathJoin(node_local, "epochfs-" .. user)
local own = os.getenv("EPOCHFS_CACHE")
if not own or own == cache then
    setenv("EPOCHFS_CACHE", cache)
end
