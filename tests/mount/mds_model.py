"""A writer of the shards and indexes of MosaicML Streaming, without that library."""

import hashlib
import json
import struct

import numpy as np

ARRAYS = {"uint8": 8, "int8": 9, "uint16": 16, "int16": 17, "float16": 18, "uint32": 32, "int32": 33, "float32": 34, "uint64": 64,
          "int64": 65, "float64": 66}


def array(values, width=0, has_type=False):
    """A value of `ndarray:TYPE`, or with has_type of `ndarray`; each axis is a number of 1 << width bytes."""
    values = np.asarray(values)
    head = bytes([ARRAYS[values.dtype.name]] * has_type) + bytes([4 * values.ndim + width])
    return head + b"".join(n.to_bytes(1 << width, "little") for n in values.shape) + values.astype(values.dtype.newbyteorder("<")).tobytes()


def pil(pixels):
    mode = b"L" if pixels.ndim == 2 else b"RGB"
    return struct.pack("<III", pixels.shape[1], pixels.shape[0], len(mode)) + mode + pixels.tobytes()


def sample(sizes, values):
    """Columns with a size of None have it in front."""
    return b"".join(struct.pack("<I", len(v)) for size, v in zip(sizes, values) if size is None) + b"".join(values)


def shard(samples, change=None):
    """change(offsets): those that are written instead."""
    head = b"{}"
    at = [4 + 4 * (len(samples) + 1) + len(head)]
    for data in samples:
        at.append(at[-1] + len(data))
    at = change(at) if change else at
    return struct.pack(f"<{len(at) + 1}I", len(samples), *at) + head + b"".join(samples)


def entry(columns, name, raw, samples, packed=None, packing="bz2", **more):
    """A shard's entry in the index. columns: names, encodings and sizes."""
    names, encodings, sizes = columns
    return {"column_names": names, "column_encodings": encodings, "column_sizes": sizes, "format": "mds", "version": 2, "samples": samples,
            "compression": packed and packing,
            "raw_data": {"basename": name, "bytes": len(raw), "hashes": {"sha1": hashlib.sha1(raw).hexdigest()}},
            "zip_data": packed and {"basename": f"{name}.{packing}", "bytes": len(packed), "hashes": {}}, **more}


def index(*entries, version=2):
    return json.dumps({"shards": entries, "version": version}).encode()
