"""TFRecord files and tf.train.Example, written and read without epochfs and without TensorFlow."""

import struct

TABLE = []
for byte in range(256):
    crc = byte
    for _ in range(8):
        crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    TABLE.append(crc)


def masked(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def frame(data):
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked(length)) + data + struct.pack("<I", masked(data))


def records(data, check=True):
    """The data of each record."""
    at, found = 0, []
    while at < len(data):
        n, crc = struct.unpack_from("<QI", data, at)
        assert crc == masked(data[at:at + 8]), at
        body = data[at + 12:at + 12 + n]
        assert len(body) == n, at
        assert not check or masked(body) == struct.unpack_from("<I", data, at + 12 + n)[0], at
        found.append(body)
        at += 16 + n
    return found


# ---- messages, written ----

def varint(v):
    v &= (1 << 64) - 1
    out = b""
    while v > 127:
        out += bytes([v & 127 | 128])
        v >>= 7
    return out + bytes([v])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def integers(*values):
    return field(3, field(1, b"".join(map(varint, values))))


def floats(*values):
    return field(2, field(1, struct.pack(f"<{len(values)}f", *values)))


def strings(*values):
    return field(1, b"".join(field(1, v) for v in values))


def features(values):
    """From {name: integers(...)}."""
    return b"".join(field(1, field(1, name.encode()) + field(2, value)) for name, value in values.items())


def example(**values):
    return field(1, features(values))


def sequence(context, lists):
    """lists: {name: [Feature of each step]}"""
    steps = {name: b"".join(field(1, f) for f in values) for name, values in lists.items()}
    return field(1, features(context)) + field(2, features(steps))


# ---- messages, read ----

def read_varint(data, at):
    v = shift = 0
    while True:
        byte = data[at]
        at += 1
        v |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return v, at


def parts(data):
    """(number, wire, value) of each field; no groups."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = read_varint(data, at)
        else:
            n = {1: 8, 5: 4}.get(wire)
            if n is None:
                assert wire == 2, wire
                n, at = read_varint(data, at)
            value = data[at:at + n]
            assert len(value) == n
            at += n
        yield tag >> 3, wire, value


def signed(v):
    return v - (1 << 64) if v >> 63 else v


def read_feature(data, before=(None, [])):
    """(kind, values)"""
    kind, values = before
    for number, wire, body in parts(data):
        if wire != 2 or number > 3:
            continue
        found = ("bytes", "float", "int64")[number - 1]
        if found != kind:
            kind, values = found, []
        for n, w, value in parts(body):
            if n != 1:
                continue
            if kind == "bytes" and w == 2:
                values = values + [value]
            elif kind == "float" and w in (2, 5):
                values = values + list(struct.unpack(f"<{len(value) // 4}f", value))
            elif kind == "int64" and w == 0:
                values = values + [signed(value)]
            elif kind == "int64" and w == 2:
                at = 0
                while at < len(value):
                    v, at = read_varint(value, at)
                    values = values + [signed(v)]
    return kind, values


def read_map(data, value_of):
    found = {}
    for number, wire, entry in parts(data):
        if number != 1 or wire != 2:
            continue
        name, value = b"", None
        for n, w, body in parts(entry):
            if n == 1 and w == 2:
                name = body
            elif n == 2 and w == 2:
                value = (value or b"") + body  # messages merge as their bytes do
        found[name] = value_of(value or b"")
    return found


def read_example(data):
    """{name: (kind, values)}, and of feature_lists {name: [(kind, values) of each step]}"""
    context, lists = {}, {}
    for number, wire, body in parts(data):
        if wire != 2:
            continue
        if number == 1:
            context.update(read_map(body, read_feature))
        elif number == 2:
            lists.update(read_map(body, lambda v: [read_feature(b) for n, w, b in parts(v) if n == 1 and w == 2]))
    return context, lists
