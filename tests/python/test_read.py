#!/usr/bin/python3
"""epochfs._read against files of NumPy, cut, damaged and hostile ones."""

import os
import random
import struct
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np

from epochfs import BadBatchError
from epochfs import _read
from epochfs._read import read_npy, read_npz

ARRAYS = {
    "image": np.arange(2 * 28 * 28, dtype=np.uint8).reshape(2, 28, 28),
    "label": np.array([3, 4], np.uint8),
    "scalar": np.array(2.5),
    "none": np.zeros((0, 7), np.float32),
    "key": np.array([b"000001", b"000002"]),
    "nothing": np.array([b"", b""]),
    "flag": np.array([True, False]),
    "wide": np.ones((1,) * 20, np.complex128),
    "index": np.array([1, 2], np.int64),
}


def npy_bytes(header, data=b"", version=1):
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + data


class Read(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "file")

    def write(self, data):
        with open(self.path, "wb") as f:
            f.write(data)

    def npz(self, **arrays):
        with open(self.path, "wb") as f:
            np.savez(f, **arrays)
        with open(self.path, "rb") as f:
            return f.read()

    def same(self, found, want):
        self.assertEqual(list(found), list(want))
        for name, array in want.items():
            np.testing.assert_array_equal(found[name], array)
            self.assertEqual((found[name].dtype, found[name].shape), (array.dtype, array.shape), name)
            self.assertTrue(found[name].flags.writeable and found[name].flags.c_contiguous)

    def test_npz__as_numpy_writes_it(self):
        self.npz(**ARRAYS)  # numpy's members have ZIP64 headers
        self.same(read_npz(self.path), ARRAYS)

    def test_npz__short_headers(self):
        data = bytearray()
        import zipfile
        with zipfile.ZipFile(self.path, "w") as archive:
            for name, array in ARRAYS.items():
                with tempfile.TemporaryFile() as f:
                    np.save(f, array)
                    f.seek(0)
                    data = f.read()
                archive.writestr(f"{name}.npy", data)
        self.same(read_npz(self.path), ARRAYS)

    def test_npz__some_fields(self):
        self.npz(**ARRAYS)
        self.same(read_npz(self.path, ["label", "image"]), {n: ARRAYS[n] for n in ("image", "label")})
        with self.assertRaisesRegex(KeyError, "sound: expected one of image, label, "):
            read_npz(self.path, ["image", "sound"])

    def test_npz__no_members(self):
        self.npz()
        self.assertEqual(read_npz(self.path), {})

    def test_npz__memory_is_what_is_given(self):
        self.npz(**ARRAYS)
        given = []

        def memory(shape, dtype):
            given.append(np.empty(shape, dtype))
            return given[-1]

        found = read_npz(self.path, ["image"], memory)
        self.assertEqual(len(given), 1)
        self.assertIs(found["image"], given[0])
        self.assertTrue(found["image"].flags.aligned)

    def test_npz__every_prefix_is_an_error(self):
        data = self.npz(image=ARRAYS["image"][:, :4, :4], label=ARRAYS["label"])
        for size in range(len(data)):
            self.write(data[:size])
            with self.assertRaises(BadBatchError, msg=f"{size} of {len(data)} bytes"):
                read_npz(self.path)

    def test_npz__cut_in_a_member_says_so(self):
        data = self.npz(**ARRAYS)
        self.write(data[:1000])
        with self.assertRaisesRegex(BadBatchError, "'image.npy' goes beyond the file's end at byte 1000; the file is cut short"):
            read_npz(self.path)

    def test_npz__a_member_is_gone(self):
        data = self.npz(image=ARRAYS["image"], label=ARRAYS["label"])
        self.write(data[data.index(b"PK\x03\x04", 1):])
        with self.assertRaisesRegex(BadBatchError, "the archive's end tells 2 members before byte [0-9]+, got 1 before"):
            read_npz(self.path)

    def test_npz__the_file_shrinks_while_it_is_read(self):
        self.npz(**ARRAYS)
        with mock.patch.object(os, "preadv", return_value=0):
            with self.assertRaisesRegex(BadBatchError, "the file ends at byte"):
                read_npz(self.path)
        with mock.patch.object(os, "pread", return_value=b""):
            with self.assertRaisesRegex(BadBatchError, "the file ends at byte 0, expected [0-9]+ bytes"):
                read_npz(self.path)

    def test_npz__short_reads_go_on(self):
        self.npz(**ARRAYS)
        pread, preadv = os.pread, os.preadv
        with mock.patch.object(os, "pread", lambda fd, size, at: pread(fd, min(size, 7), at)), \
                mock.patch.object(os, "preadv", lambda fd, memory, at: preadv(fd, [memory[0][:100]], at)):
            self.same(read_npz(self.path), ARRAYS)

    def test_npz__an_error_closes_the_file(self):
        self.npz(**ARRAYS)
        before = os.listdir("/proc/self/fd")
        with mock.patch.object(os, "preadv", side_effect=OSError(5, "EIO")):
            with self.assertRaises(OSError):
                read_npz(self.path)
        self.assertEqual(os.listdir("/proc/self/fd"), before)

    def test_npz__deflated(self):
        with open(self.path, "wb") as f:
            np.savez_compressed(f, **ARRAYS)
        with self.assertRaisesRegex(BadBatchError, "'image.npy': expected an array that is stored"):
            read_npz(self.path)

    def test_npz__damage_is_an_error_or_other_data(self):
        data = self.npz(image=ARRAYS["image"][:, :4, :4], label=ARRAYS["label"])
        rng = random.Random(5)
        refused = 0
        for _ in range(2000):
            damaged = bytearray(data)
            for _ in range(rng.randint(1, 3)):
                damaged[rng.randrange(len(damaged))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
            self.write(damaged)
            try:
                found = read_npz(self.path)
                self.assertLessEqual(sum(a.nbytes for a in found.values()), len(data))
            except BadBatchError:
                refused += 1
        self.assertGreater(refused, 500)

    def test_npy(self):
        for name, array in ARRAYS.items():
            with open(self.path, "wb") as f:
                np.save(f, array)
            self.same({name: read_npy(self.path)}, {name: array})

    def test_npy__bytes_behind_it(self):
        np.save(self.path + ".npy", ARRAYS["image"])
        with open(self.path + ".npy", "ab") as f:
            f.write(b"x")
        with self.assertRaisesRegex(BadBatchError, "of 1568 bytes, got 1569"):
            read_npy(self.path + ".npy")

    def test_npy__version_2(self):
        self.write(npy_bytes(b"{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }\n", b"\1\0\2\0", version=2))
        self.assertEqual(read_npy(self.path).tolist(), [1, 2])

    def test_npy__hostile_headers(self):
        good = b"{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }\n"
        digits = b"{'descr': '<i2', 'fortran_order': False, 'shape': (" + b"1" * 30000 + b"x), }\n"
        for name, header, reason in [
                ("fortran-order", good.replace(b"False", b"True"), "Fortran's order"),
                ("objects", good.replace(b"<i2", b"|O"), "cannot be read"),
                ("records", good.replace(b"'<i2'", b"[('a', '<i2')]"), "cannot be read"),
                ("no-such-type", good.replace(b"<i2", b"<i7"), "i7"),
                ("code", good.replace(b"(2,)", b"(1+1,)"), "cannot be read"),
                ("negative", good.replace(b"(2,)", b"(-2,)"), "cannot be read"),
                ("too-large", good.replace(b"(2,)", b"(999999999999999999, 999999999999999999)"), "got 4"),
                ("many-axes", good.replace(b"(2,)", b"(" + b"1," * 99 + b"2)"), "100 axes"),
                ("many-digits", digits, "cannot be read"),
                ("empty", b"", "cannot be read")]:
            self.write(npy_bytes(header, b"\1\0\2\0"))
            with self.assertRaisesRegex(BadBatchError, reason, msg=name):
                read_npy(self.path)
        for name, data in [("length", b"\x93NUMPY\1\0\xff\xff" + good), ("magic", b"\x93NUMPZ\1\0\x10\0" + good),
                           ("nothing", b""), ("long", b"\x93NUMPY\2\0\xff\xff\xff\x7f" + good)]:
            self.write(data)
            with self.assertRaises(BadBatchError, msg=name):
                read_npy(self.path)

    def test_message_names_the_file(self):
        self.write(b"PK")
        with self.assertRaisesRegex(BadBatchError, self.path + ": byte 0: the archive's directory is missing"):
            read_npz(self.path)

    def test_header_cache_is_bounded(self):
        self.assertIsNotNone(_read._parse_header.cache_info().maxsize)


if __name__ == "__main__":
    sys.exit(unittest.main())
