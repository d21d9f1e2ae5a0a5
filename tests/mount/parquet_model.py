"""A writer of Parquet after the specification (README, parquet.thrift, Encodings, Compression of
parquet-format), for the cases of this folder: any nesting, v1 and v2 pages, dictionaries, codecs.

A node is (name, repetition, type or children, options): "required", "optional" or "repeated"; a
type's number, or a list of nodes. Options: converted (a number), length, logical (bytes of Thrift).
A row is a dict; a repeated node has a list of values.
"""

import gzip
import struct
import zlib

BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTES, FIXED = range(8)
NONE, SNAPPY, GZIP = range(3)
REPETITIONS = {"required": 0, "optional": 1, "repeated": 2}


# ---- Thrift ----

def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def number(n):
    return varint(n * 2 if n >= 0 else -n * 2 - 1)


def binary(s):
    s = s.encode() if isinstance(s, str) else s
    return varint(len(s)) + s


def listed(kind, items):
    head = bytes([len(items) << 4 | kind]) if len(items) < 15 else bytes([15 << 4 | kind]) + varint(len(items))
    return head + b"".join(items)


def thrift(*fields):
    """(id, kind, bytes), mostly in order: a struct. Kinds: 5 i32, 6 i64, 8 binary, 9 list, 12 struct."""
    out, last = b"", 0
    for field, kind, value in fields:
        delta = field - last
        out += bytes([delta << 4 | kind]) if 0 < delta < 16 else bytes([kind]) + number(field)
        out += value
        last = field
    return out + b"\0"


# ---- encodings ----

def runs(values, width):
    """Levels or ids, each a run of one or more."""
    out, i = b"", 0
    while i < len(values):
        n = 1
        while i + n < len(values) and values[i + n] == values[i]:
            n += 1
        out += varint(n << 1) + values[i].to_bytes((width + 7) // 8, "little")
        i += n
    return out


def plain(kind, values):
    if kind == BOOLEAN:
        bits = sum(bool(v) << i for i, v in enumerate(values))
        return bits.to_bytes((len(values) + 7) // 8, "little")
    if kind == BYTES:
        return b"".join(struct.pack("<I", len(v)) + v for v in values)
    if kind in (INT96, FIXED):
        return b"".join(values)
    return struct.pack(f"<{len(values)}{'?iiqfd'[kind] if kind != INT64 else 'q'}", *values) if kind not in (FLOAT, DOUBLE) \
        else struct.pack(f"<{len(values)}{'f' if kind == FLOAT else 'd'}", *values)


def snappy(data):
    """Literals of 60 bytes; of 64 KiB in large pages, as writers make of what does not become smaller."""
    def literal(part):
        return (bytes([len(part) - 1 << 2]) if len(part) <= 60 else struct.pack("<BH", 61 << 2, len(part) - 1)) + part
    n = 60 if len(data) < 1 << 20 else 1 << 16
    return varint(len(data)) + b"".join(literal(data[i:i + n]) for i in range(0, len(data), n))


def pack(codec, data):
    return snappy(data) if codec == SNAPPY else gzip.compress(data, 1) if codec == GZIP else data


# ---- shredding ----

class Leaf:
    def __init__(self, path, kind, options):
        self.path, self.kind, self.options = path, kind, options
        self.max_def = sum(rep != "required" for _, rep in path)
        self.max_rep = sum(rep == "repeated" for _, rep in path)
        self.entries = []  # (rep, def, value)

    def shred(self, value, depth=0, rep=0, level=0, repeated=0):
        name, kind = self.path[depth]
        value = value.get(name) if isinstance(value, dict) else value
        if kind == "repeated":
            repeated += 1
            if not value:
                self.entries.append((rep, level, None))
            for i, item in enumerate(value or []):
                self.down(item, depth, repeated if i else rep, level + 1, repeated)
        elif value is None and kind == "optional":
            self.entries.append((rep, level, None))
        else:
            self.down(value, depth, rep, level + (kind == "optional"), repeated)

    def down(self, value, depth, rep, level, repeated):
        if depth + 1 == len(self.path):
            self.entries.append((rep, level, value))
        else:
            self.shred(value, depth + 1, rep, level, repeated)


def leaves_of(nodes, path=()):
    for name, rep, kind, *options in nodes:
        here = (*path, (name, rep))
        if isinstance(kind, list):
            yield from leaves_of(kind, here)
        else:
            yield Leaf(here, kind, options[0] if options else {})


def elements(nodes):
    for name, rep, kind, *options in nodes:
        o = options[0] if options else {}
        group = isinstance(kind, list)
        yield thrift(*[f for f in (
            None if group else (1, 5, number(kind)), (2, 5, number(o["length"])) if "length" in o else None,
            (3, 5, number(REPETITIONS[rep])), (4, 8, binary(name)), (5, 5, number(len(kind))) if group else None,
            (6, 5, number(o["converted"])) if "converted" in o else None,
            (7, 5, number(o["scale"])) if "scale" in o else None,
            (8, 5, number(o["precision"])) if "precision" in o else None,
            (10, 12, o["logical"]) if "logical" in o else None) if f])
        if group:
            yield from elements(kind)


# ---- files ----

def page(leaf, entries, codec, v2, ids, crc):
    """The bytes of a data page, and how many it is unpacked."""
    reps = runs([e[0] for e in entries], 8) if leaf.max_rep else b""
    defs = runs([e[1] for e in entries], 8) if leaf.max_def else b""
    values = [e[2] for e in entries if e[1] == leaf.max_def]
    data = plain(leaf.kind, values) if ids is None else bytes([8]) + runs([ids[v] for v in values], 8)
    n, encoding = len(entries), 0 if ids is None else 8
    if v2:
        packed = pack(codec, data)
        body = reps + defs + packed
        size = len(reps + defs + data)
        rows = sum(e[0] == 0 for e in entries)
        head = (8, 12, thrift(*[(i + 1, 5, number(v)) for i, v in enumerate(
            (n, n - len(values), rows, encoding, len(defs), len(reps)))]))
    else:
        data = b"".join(struct.pack("<I", len(level)) + level for level in (reps, defs) if level) + data
        body, size = pack(codec, data), len(data)
        head = (5, 12, thrift(*[(i + 1, 5, number(v)) for i, v in enumerate((n, encoding, 3, 3))]))
    sums = [(4, 5, number(struct.unpack("<i", struct.pack("<I", zlib.crc32(body)))[0]))] if crc else []
    header = thrift((1, 5, number(3 if v2 else 0)), (2, 5, number(size)), (3, 5, number(len(body))), *sums, head)
    return header + body, len(header) + size


def chunk(leaf, entries, at, codec, v2, page_rows, dictionary, crc, nulls):
    """The bytes of a column chunk, and its metadata."""
    out, ids, dictionary_at = b"", None, []
    values = [e[2] for e in entries if e[1] == leaf.max_def]
    if dictionary:
        ids = {v: i for i, v in enumerate(dict.fromkeys(values))}
        data = plain(leaf.kind, list(ids))
        body = pack(codec, data)
        dictionary_at = [(11, 6, number(at))]
        out += thrift((1, 5, number(2)), (2, 5, number(len(data))), (3, 5, number(len(body))),
                      (7, 12, thrift((1, 5, number(len(ids))), (2, 5, number(0))))) + body
    first = unpacked = len(out)
    starts = [i for i, e in enumerate(entries) if e[0] == 0][::page_rows] + [len(entries)]
    for a, b in zip(starts, starts[1:]):
        data, size = page(leaf, entries[a:b], codec, v2, ids, crc)
        out += data
        unpacked += size
    stats = [(12, 12, thrift((3, 6, number(len(entries) - len(values)))))] if nulls else []
    return out, thrift((3, 12, thrift(
        (1, 5, number(leaf.kind)), (2, 9, listed(5, [])), (3, 9, listed(8, [binary(n) for n, _ in leaf.path])),
        (4, 5, number(codec)), (5, 6, number(len(entries))), (6, 6, number(unpacked)), (7, 6, number(len(out))),
        (9, 6, number(at + first)), *dictionary_at, *stats)))


def make(nodes, rows, groups=None, codec=NONE, v2=False, page_rows=4, dictionary=False, crc=False, nulls=True,
         metadata=None, backwards=False):
    """A file of these rows; groups: how many each row group has. nulls: statistics count them. backwards: the footer
    begins with its last field."""
    out, row_groups, at = b"PAR1", [], 0
    for n in groups or [len(rows)]:
        chunks = []
        for leaf in leaves_of(nodes):
            for row in rows[at:at + n]:
                leaf.shred(row)
            data, meta = chunk(leaf, leaf.entries, len(out), codec, v2, page_rows, dictionary, crc, nulls)
            out += data
            chunks.append(meta)
        row_groups.append(thrift((1, 9, listed(12, chunks)), (2, 6, number(0)), (3, 6, number(n))))
        at += n
    schema = [thrift((4, 8, binary("schema")), (5, 5, number(len(nodes)))), *elements(nodes)]
    keys = [thrift((1, 8, binary(k)), (2, 8, binary(v))) for k, v in (metadata or {}).items()]
    fields = [(1, 5, number(2)), (2, 9, listed(12, schema)), (3, 6, number(len(rows))),
              (4, 9, listed(12, row_groups)), *([(5, 9, listed(12, keys))] if keys else []), (6, 8, binary("by hand"))]
    footer = thrift(*(fields[::-1] if backwards else fields))
    return out + footer + struct.pack("<I", len(footer)) + b"PAR1"
