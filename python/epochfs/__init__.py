"""epochfs from Python: read samples and shuffled batches of datasets as arrays.

    import epochfs
    with epochfs.load("/data/mnist") as data:
        for batch in data["train"].batches("batch=128,seed=7", epoch=0):
            batch["image"], batch["label"]      # (128, 28, 28) uint8, (128,) uint8

`load()` reads in this process. `mount()` mounts the same data as files, and `open()` uses an existing mount.
`epochfs.torch`, `epochfs.sklearn` and `epochfs.xgboost` feed those libraries.
All errors are `Error`, an OSError, or one of its kinds. An epoch has all its batches, or raises.
"""

from ._batches import Batches, csr
from .errors import BadBatchError, DeadMountError, Error, MountError, PlanError, StaleSourceError
from ._library import Library, load
from ._mount import Dataset, Field, Mount, mount, open  # pylint: disable=redefined-builtin

__version__ = "0.1.0"
__all__ = ["BadBatchError", "Batches", "Dataset", "DeadMountError", "Error", "Field", "Library", "Mount", "MountError",
           "PlanError", "StaleSourceError", "csr", "load", "mount", "open"]
