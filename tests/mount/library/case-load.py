#!/usr/bin/python3
"""epochfs.load() where a mount is impossible: no /dev/fuse, no privilege, no HOME, few descriptors, a cache that cannot be written;
kept arrays, processes, the end of the interpreter, and what is said where there is no library."""

import os
import subprocess
import sys

import numpy as np

from lib import EPOCHFS, SLOW, SOURCE, contains, equal, idx_bytes, skip, write
from page_blocks import ROOT

BUILD = os.path.dirname(EPOCHFS)
if SLOW or not os.path.exists(f"{BUILD}/libepochfs.so.0"):
    skip("the library is not built, or with a sanitizer, which a program would have to bring")

rng = np.random.default_rng(5)
IMAGES = rng.integers(0, 256, (300, 6, 6), np.uint8)
write("train-images-idx3-ubyte", idx_bytes(IMAGES))
write("train-labels-idx1-ubyte", idx_bytes(rng.integers(0, 10, 300, np.uint8)))
ALL = f"""
import sys
sys.path.insert(0, {ROOT + '/python'!r})
import epochfs
"""
EPOCH = ALL + f"""
with epochfs.load({SOURCE!r}) as data:
    for batch in data["train"].batches("batch=32,seed=7"):
        total = int(batch["image"].sum()) + globals().get("total", 0)
print(total)
"""
ENVIRONMENT = {"EPOCHFS_LIBRARY": f"{BUILD}/libepochfs.so.0", "PATH": os.environ["PATH"]}


def python(program, *prefix, **more):
    done = subprocess.run([*prefix, sys.executable, "-c", program], env={**ENVIRONMENT, **more}, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    equal(done.stderr, "", "what it prints to stderr")
    equal(done.returncode, 0, "exit code")
    return done.stdout


SUM = f"{int(IMAGES.sum())}\n"
equal(python(EPOCH), SUM)
equal(python(EPOCH, "bash", "-c", 'ulimit -n 64; exec "$@"', "bash"), SUM, "with 64 descriptors")
bare = ["unshare", "--user", "--mount", "--map-root-user"]
if subprocess.run([*bare, "true"], stderr=subprocess.DEVNULL).returncode == 0:
    hide = 'mount --bind /dev/null /dev/fuse 2>/dev/null; exec "$@"'
    equal(python(EPOCH, *bare, "sh", "-c", hide, "sh"), SUM, "without /dev/fuse")
if os.geteuid() == 0:
    os.chmod(SOURCE, 0o755)
    as_nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--no-new-privs", "--bounding-set", "-all"]
    if subprocess.run([*as_nobody, "test", "-r", f"{SOURCE}/train-labels-idx1-ubyte", "-a", "-r", f"{ROOT}/python/epochfs/torch.py"]).returncode == 0:
        equal(python(EPOCH, *as_nobody), SUM, "as uid 65534, without HOME")

# Arrays that are kept stay as they are, also when the source is closed and the interpreter ends.
print(python(ALL + f"""
import gc, os, pickle
import numpy as np
data = epochfs.load({SOURCE!r}, readahead="1K")
train = data["train"]
kept = [batch["image"][1:3] for epoch in range(3) for batch in train.batches("batch=32,seed=7", epoch=epoch)]
again = [batch["image"][1:3].copy() for epoch in range(3) for batch in train.batches("batch=32,seed=7", epoch=epoch)]
assert all((a == b).all() for a, b in zip(kept, again))
assert kept[0].base is not None
batches = train.batches("batch=32,seed=7")
pids = []
for way in range(3):
    pid = os.fork()
    if not pid:  # opens the source itself, whether the parent had a batch or not
        ok = (batches.read(4)["image"][1:3] == kept[4]).all() and len(data["train"]) == 300
        os._exit(0 if ok else 1)
    pids.append(pid)
assert [os.waitpid(pid, 0)[1] for pid in pids] == [0, 0, 0]
other = pickle.loads(pickle.dumps(batches))
assert (other.read(5)["image"][1:3] == kept[5]).all()
assert data.status()["source"] == {SOURCE!r}
last = train.batches("batch=32,seed=7").read(9)
data.close()
assert (last["image"] == last["image"].copy()).all()
try:
    batches.read(0)
except epochfs.DeadMountError as e:
    assert "closed" in str(e), e
else:
    raise AssertionError("read after close")
for options in ({{"allow_other": True}}, {{"open": "pass"}}):
    try:
        epochfs.load({SOURCE!r}, **options)
    except epochfs.MountError as e:
        assert "means nothing without a mount" in str(e), e
    else:
        raise AssertionError(options)
""" + "alive = epochfs.load(" + repr(SOURCE) + ")\nheld = next(iter(alive['train'].batches('batch=8')))\nprint('ends with a batch alive')\n"))

# What the mount would log is a warning.
write("../noted/train-images-idx3-ubyte", idx_bytes(IMAGES))
write("../noted/what.xyz", b"of no format")
print(python(ALL + f"""
import warnings
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    with epochfs.load({os.path.dirname(SOURCE) + '/noted'!r}) as data:
        notes = data.notes()
assert [str(w.message) for w in seen] == notes and len(notes) == 1 and notes[0].startswith("not used: what.xyz"), (seen, notes)
assert seen[0].filename == "<string>", seen[0]
"""))

# What C would take for another name: it ends at a NUL, and a comma is between two.
print(python(ALL + f"""
data = epochfs.load({SOURCE!r})
train = data["train"]
for kind, call in ((ValueError, lambda: epochfs.load({SOURCE!r} + "\\0x")), (ValueError, lambda: epochfs.load({SOURCE!r}, label="label\\0x")),
                   (ValueError, lambda: train.batches("batch=8", fields=["image\\0"]).read(0)),
                   (KeyError, lambda: train.batches("batch=8", fields=["image,label"]).read(0)),
                   (KeyError, lambda: train.batches("batch=8", fields=[""]).read(0))):
    try:
        call()
    except kind as e:
        assert "NUL" in str(e) or "without a comma" in str(e), e
    else:
        raise AssertionError(kind)
"""))

# A field that batches lack is a KeyError, a field that no plan can count by is a plan that does not open.
print(python(ALL + f"""
train = epochfs.load({SOURCE!r})["train"]
for kind, says, call in ((KeyError, "sound: expected one of image", lambda: train.batches("batch=8", fields=["sound"]).read(0)),
                         (KeyError, "expected one of image", lambda: train.batches("batch=8", fields=["a\\nb"]).read(0)),
                         (KeyError, "expected one of image", lambda: train.batches("batch=8", fields=["a\\udcff"]).read(0)),
                         (epochfs.PlanError, "'batch=8,unit=image' does not open: field image: expected a number",
                          lambda: train.batches("batch=8,unit=image", fields=["image"]).read(0)),
                         (epochfs.PlanError, "does not open: field image: expected a number",
                          lambda: train.batches("batch=8,draw=9:image").read(0))):
    try:
        call()
    except kind as e:
        assert says in str(e), e
    else:
        raise AssertionError(says)
"""))

# A loader of PyTorch, where it is installed: the state is exact, and each worker opens the source itself.
if subprocess.run([sys.executable, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode == 0:
    python(ALL + f"""
import epochfs.torch
data = epochfs.load({SOURCE!r})
for workers in (0, 2):
    batches = epochfs.torch.Batches(data["train"], "batch=32,seed=7", fields=["image", "index"])
    whole = [b["index"].tolist() for b in epochfs.torch.Loader(batches, num_workers=workers)]
    batches.seek(0)
    seen = []
    for batch in epochfs.torch.Loader(batches, num_workers=workers):
        seen.append(batch["index"].tolist())
        if len(seen) == 4:
            state = batches.state_dict()
            break
    rest = epochfs.torch.Batches(data["train"], "batch=32,seed=7", fields=["image", "index"])
    rest.load_state_dict(state)
    seen += [b["index"].tolist() for b in epochfs.torch.Loader(rest, num_workers=workers)]
    assert seen == whole and len(whole) == 10, workers
""")

missing = subprocess.run([sys.executable, "-c", EPOCH], env={"EPOCHFS_LIBRARY": "/no/libepochfs.so.0"}, text=True, stderr=subprocess.PIPE)
equal(missing.returncode, 1)
contains(missing.stderr, "MountError: /no/libepochfs.so.0: the library cannot be loaded", "install epochfs with its library")
