-- epochfs for Lmod; the file epochfs beside it is the same for environment modules (Tcl). To be
-- copied to where a site has its modulefiles; two lines are the site's own:

local root = "/usr/local"
local node_local = "/var/tmp"

-- root: where `cmake --install` has put epochfs (bin/epochfs, share/man). node_local: a folder that
-- each node has on a disk of its own, the same on all nodes: batch jobs take the environment with
-- them.

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
