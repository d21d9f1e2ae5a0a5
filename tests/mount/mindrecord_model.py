"""MindRecord, read and written without epochfs: the reader walks pages, the writer makes files as
MindSpore does, small pages and all, and can be told to lie."""

import json
import struct

import numpy as np

DTYPES = {"int32": "<i4", "int64": "<i8", "float32": "<f4", "float64": "<f8"}


def in_blob(spec):
    return spec["type"] == "bytes" or "shape" in spec


# ---- MessagePack: maps of scalars and text ----

def pack_value(v):
    if v is None:
        return b"\xc0"
    if isinstance(v, Raw):
        return v.data
    if isinstance(v, bool):
        return b"\xc3" if v else b"\xc2"
    if isinstance(v, float):
        return b"\xcb" + struct.pack(">d", v)
    if isinstance(v, (str, bytes)):
        data = v.encode() if isinstance(v, str) else v
        n = len(data)
        return (bytes([0xa0 + n]) if n < 32 else b"\xd9" + bytes([n]) if n < 256 else
                b"\xda" + struct.pack(">H", n) if n < 65536 else b"\xdb" + struct.pack(">I", n)) + data
    if 0 <= v < 128 or -32 <= v < 0:
        return struct.pack("b", v)
    if v >= 0:
        tag = next(t for t in range(4) if v < 1 << (8 << t))
        return bytes([0xcc + tag]) + v.to_bytes(1 << tag, "big")
    tag = next(t for t in range(4) if v >= -(1 << ((8 << t) - 1)))
    return bytes([0xd0 + tag]) + v.to_bytes(1 << tag, "big", signed=True)


class Raw:
    """A value as its bytes."""

    def __init__(self, data):
        self.data = data


def pack_map(values):
    n = len(values)
    head = bytes([0x80 + n]) if n < 16 else b"\xde" + struct.pack(">H", n)
    return head + b"".join(pack_value(k) + pack_value(v) for k, v in values.items())


def unpack_value(data, at):
    tag = data[at]
    at += 1
    if tag < 0x80:
        return tag, at
    if tag >= 0xe0:
        return tag - 256, at
    if 0xa0 <= tag < 0xc0:
        return data[at:at + tag - 0xa0], at + tag - 0xa0
    if tag == 0xca:
        return struct.unpack_from(">f", data, at)[0], at + 4
    if tag == 0xcb:
        return struct.unpack_from(">d", data, at)[0], at + 8
    if 0xcc <= tag <= 0xd3:
        n = 1 << (tag & 3)
        return int.from_bytes(data[at:at + n], "big", signed=tag >= 0xd0), at + n
    assert 0xd9 <= tag <= 0xdb, hex(tag)
    n = 1 << (tag - 0xd9)
    size = int.from_bytes(data[at:at + n], "big")
    return data[at + n:at + n + size], at + n + size


def unpack_map(data):
    tag, at = data[0], 1
    if tag == 0xde:
        n, at = struct.unpack_from(">H", data, 1)[0], 3
    else:
        n = tag & 15
    ret = {}
    for _ in range(n):
        key, at = unpack_value(data, at)
        ret[key.decode()], at = unpack_value(data, at)
    assert at == len(data)
    return ret


# ---- packed integers ----

def pack_ints(values):
    codes, data = [], b""
    for v in map(int, values):
        code = next(c for c in range(4) if -(1 << ((8 << c) - 1)) <= v < 1 << ((8 << c) - 1))
        codes.append(code)
        data += v.to_bytes(1 << code, "little", signed=True)
    codes += [0] * (-len(codes) % 4)
    packed = bytes(codes[i] << 6 | codes[i + 1] << 4 | codes[i + 2] << 2 | codes[i + 3]
                   for i in range(0, len(codes), 4))
    return struct.pack(">I", len(values)) + packed + data


def unpack_ints(data):
    n = struct.unpack_from(">I", data)[0]
    at, ret = 4 + (n + 3) // 4, []
    for i in range(n):
        size = 1 << (data[4 + i // 4] >> (6 - i % 4 * 2) & 3)
        ret.append(int.from_bytes(data[at:at + size], "little", signed=True))
        at += size
    assert at == len(data)
    return ret


# ---- reading ----

def load(spec, value, packed):
    """A value as epochfs must show it: bytes, or an array."""
    kind = spec["type"]
    if kind in ("bytes", "string"):
        return bytes(value)
    if "shape" not in spec:
        return np.array(value, DTYPES[kind])
    if packed and kind.startswith("int"):
        return np.array(unpack_ints(value), DTYPES[kind]).reshape(spec["shape"])
    return np.frombuffer(value, DTYPES[kind]).reshape(spec["shape"])


def read(data):
    """The header, and the rows: {field: bytes or array}."""
    size = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + size])
    schema, blobs = header["schema"][0]["schema"], header["schema"][0]["blob_fields"]
    packed = header["version"] == "3.0"
    raw, rows = {}, []

    def place(page):
        return header["header_size"] + header["page_size"] * page["page_id"]

    for page in header["page"] or []:
        for group in page["row_group_ids"] if page["page_type"] == "RAW_DATA" else []:
            raw[group["id"]] = place(page) + group["offset"]
    for page in sorted((p for p in header["page"] or [] if p["page_type"] == "BLOB_DATA"),
                       key=lambda p: p["start_row_id"]):
        at, raw_at = place(page), raw[page["page_type_id"]]
        for _ in range(page["start_row_id"], page["end_row_id"]):
            n, = struct.unpack_from("<Q", data, at)
            blob = data[at + 8:at + 8 + n]
            at += 8 + n
            n, = struct.unpack_from("<Q", data, raw_at)
            values = unpack_map(data[raw_at + 8:raw_at + 8 + n])
            raw_at += 8 + n
            values = {k: v for k, v in values.items() if k in schema}
            off = 0
            for name in blobs:
                n = len(blob) if len(blobs) == 1 else struct.unpack_from(">Q", blob, off)[0]
                off += 0 if len(blobs) == 1 else 8
                values[name] = blob[off:off + n]
                off += n
            rows.append({k: load(schema[k], values[k], packed) for k in schema})
    return header, rows


# ---- writing ----

def make_blob(schema, row, version):
    blobs, parts = sorted(k for k in schema if in_blob(schema[k])), []
    for name in blobs:
        value = row[name]
        if not isinstance(value, (bytes, bytearray)):
            kind = schema[name]["type"]
            value = pack_ints(np.ravel(value)) if version == "3.0" and kind.startswith("int") else \
                np.asarray(value, DTYPES[kind]).tobytes()
        parts.append(value)
    if not blobs:
        return b"\0\0\0\0"
    return parts[0] if len(blobs) == 1 else b"".join(struct.pack(">Q", len(p)) + p for p in parts)


def length(data):
    return struct.pack("<Q", len(data)) + data


def make(schema, rows, version="3.0", header_size=16384, page_size=32768, rows_of_page=None, shard=0,
         addresses=("made.mindrecord",), blob_of=None, raw_of=None, change=None, group_at=None):
    """A file. A new blob page after rows_of_page rows, or when one is full; all raw rows are in one
    raw page, which is page 1. blob_of(i, bytes), raw_of(i, bytes): what is written for row i instead,
    with its length; change(header): of the header before it is written."""
    blobs, raws, first = [], b"", 0
    blob = b""
    starts = []
    for i, row in enumerate(rows):
        one = length(make_blob(schema, row, version))
        one = blob_of(i, one) if blob_of else one
        values = {k: row[k] for k in schema if not in_blob(schema[k]) and k in row}
        raw = length(row["raw"] if "raw" in row else pack_map(values or {"id": 0}))
        raw = raw_of(i, raw) if raw_of else raw
        if blob and (len(blob) + len(one) > page_size or i - first == rows_of_page):
            blobs.append((first, i, blob))
            first, blob = i, b""
        if not blob:
            starts.append(len(raws))
        blob += one
        raws += raw
    if rows:
        blobs.append((first, len(rows), blob))
    assert all(len(b) <= page_size for _, _, b in blobs) and len(raws) <= page_size
    groups = [{"id": g, "offset": at} for g, at in enumerate(starts)]
    pages, data = [], b""
    for g, (start, end, blob) in enumerate(blobs):
        pages.append({"page_id": g + (g > 0), "shard_id": shard, "page_type": "BLOB_DATA", "page_type_id": g,
                      "start_row_id": start, "end_row_id": end, "row_group_ids": [{"id": 0, "offset": 0}],
                      "page_size": len(blob)})
    if rows:
        pages.insert(1, {"page_id": 1, "shard_id": shard, "page_type": "RAW_DATA", "page_type_id": 0,
                         "start_row_id": 0, "end_row_id": 0, "row_group_ids": groups,
                         "page_size": len(raws)})
    header = {"header_size": header_size, "page_size": page_size, "version": version, "shard_id": shard,
              "shard_addresses": list(addresses), "index_fields": None, "statistics": None,
              "compression_size": 0, "page": pages or None,
              "schema": [{"desc": "made", "schema": schema,
                          "blob_fields": sorted(k for k in schema if in_blob(schema[k]))}]}
    places = [header_size + page_size * p["page_id"] for p in pages if p["page_type"] == "BLOB_DATA"]
    if change:
        header = json.loads(json.dumps(header))
        header = change(header) or header
    text = header if isinstance(header, bytes) else json.dumps(header, sort_keys=True).encode()
    parts = {0: length(text)}
    for place, (_, _, blob) in zip(places, blobs):
        parts[place] = blob
    if rows:
        parts[header_size + page_size] = raws
    data = bytearray(max(at + len(p) for at, p in parts.items()))
    for at, part in parts.items():
        data[at:at + len(part)] = part
    return bytes(data)
