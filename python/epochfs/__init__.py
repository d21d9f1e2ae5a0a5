"""epochfs from Python: mount datasets, read their samples and shuffled batches as arrays.

    import epochfs
    with epochfs.mount("/data/mnist") as mount:
        for batch in mount["train"].batches("batch=128,seed=7", epoch=0):
            batch["image"], batch["label"]      # (128, 28, 28) uint8, (128,) uint8

`open()` takes a mount that is there. `epochfs.torch`, `epochfs.sklearn` and `epochfs.xgboost` feed those libraries.
Everything raises `Error`, an OSError, or one of its kinds; nothing ends early in silence.
"""

from ._batches import Batches, csr
from .errors import BadBatchError, DeadMountError, Error, MountError, PlanError, StaleSourceError
from ._mount import Dataset, Field, Mount, mount, open  # pylint: disable=redefined-builtin

__version__ = "0.1.0"
__all__ = ["BadBatchError", "Batches", "Dataset", "DeadMountError", "Error", "Field", "Mount", "MountError",
           "PlanError", "StaleSourceError", "csr", "mount", "open"]
