#!/usr/bin/python3
"""epochfs._plan: what is read out of a plan's name; and the errors, which cross processes."""

import pickle
import sys
import unittest

import epochfs
from epochfs import _plan, errors


class Plan(unittest.TestCase):
    def test_folder(self):
        self.assertEqual(_plan.folder("batch=128,seed=7", 3), "batch=128,seed=7/epoch=3")
        self.assertEqual(_plan.folder("seed=7,batch=128", 3), "seed=7,batch=128/epoch=3")
        self.assertEqual(_plan.folder("batch=128", 3), "batch=128")
        with self.assertRaises(ValueError):
            _plan.folder("batch=128,seed=7", -1)

    def test_names_of_no_folder(self):
        for plan in ("", "128", "seed=7", "batch=128/../../x", "batch=1\0", "x=1,rebatch=3"):
            with self.assertRaises(epochfs.PlanError, msg=plan):
                _plan.words(plan)

    def test_step_size(self):
        for plan, size in [("batch=128", 128), ("batch=32,rank=3of8,seed=7", 256), ("batch=all,part=0of2", None)]:
            self.assertEqual(_plan.step_size(plan), size)
        for plan in ("batch=x", "batch=3,rank=3"):
            with self.assertRaises(epochfs.PlanError):
                _plan.step_size(plan)

    def test_samples_of(self):
        self.assertEqual(_plan.samples_of("batch=32,rank=3of8,seed=7,tail=drop"), "seed=7")
        self.assertEqual(_plan.samples_of("seed=7,take=0:9,batch=4"), _plan.samples_of("batch=8,take=0:9,seed=7"))
        for one, other, same in [("batch=4,bucket=8,tail=keep", "batch=4,bucket=8,rank=1of2,tail=wrap", True),
                                 ("batch=4,bucket=8", "batch=4,bucket=8,tail=drop", False),
                                 ("batch=tokens:9", "batch=tokens:9,bucket=8192,group=1,tail=drop", True),
                                 ("batch=8,bucket=8192", "batch=8,bucket=16", False)]:
            self.assertEqual(_plan.samples_of(one) == _plan.samples_of(other), same, (one, other))

    def test_errors_pickle(self):
        for kind in (errors.Error, errors.MountError, errors.DeadMountError, errors.StaleSourceError, errors.PlanError,
                     errors.BadBatchError):
            error = pickle.loads(pickle.dumps(kind(107, "dead", "/mnt")))
            self.assertEqual((type(error), error.errno, str(error)), (kind, 107, "/mnt: dead"))
            self.assertEqual(str(kind("one text, as a DataLoader makes it")), "one text, as a DataLoader makes it")
            self.assertIsInstance(error, OSError)


if __name__ == "__main__":
    sys.exit(unittest.main())
