#!/usr/bin/python3
# needs: python3-scipy
"""Thousands of generated rows: every number equals, bit for bit, the result of libc's strtof, and
the rounded one of scikit-learn; white space, comments, line ends and broken rows are read as by the
model."""

import io
import random
from decimal import Decimal, getcontext

import numpy as np

import svm_model
from lib import SLOW, SOURCE, content, equal, mounted, path, write
from model import same_array

ROWS = 1500 if SLOW else 3000
FLT_MAX = float(np.finfo(np.float32).max)
getcontext().prec = 400  # Every sum below is exact.
rng = random.Random(11)


# ---- decimal texts ----

def printed():
    value = rng.gauss(0, 1) * 10.0 ** rng.choice([0, 0, 0, rng.uniform(-50, 42)])
    form = rng.choice(["%.6f", "%.9g", "%.17g", "%e", "%g", "%.1f", "%.3e", "%.8E", "%.12f", "%r"])
    return form % value


def digits(n):
    return "".join(rng.choices("0123456789", k=n))


def random_digits():
    """1 to 25 digits, a point anywhere, leading zeros, an exponent."""
    text = digits(rng.randint(1, 25))
    if rng.random() < .6:
        place = rng.randint(0, len(text))
        text = text[:place] + "." + text[place:]
    text = rng.choice(["", "", "+", "-"]) + "0" * rng.choice([0, 0, 0, 1, 5, 30]) + text
    if rng.random() < .5:
        text += f"{rng.choice('eE')}{rng.choice(['', '+', '-', '-0', '00'])}{rng.randint(0, 60)}"
    return text


def spelled(number):
    """An exact decimal with or without an exponent, with the point moved, and zeros appended."""
    sign, figures, exponent = number.as_tuple()
    text = "".join(map(str, figures))
    form = rng.randrange(4)
    if form == 0:
        text = f"{abs(number):f}"
    elif form == 1:
        text = f"{text}e{exponent}"
    elif form == 2:
        place = rng.randint(0, len(text))
        text = f"{text[:place]}.{text[place:]}e{exponent + len(text) - place}"
    else:
        text = f"0.{text}E{exponent + len(text):+d}"
    return "-" * sign + text


def random_float():
    """The bits of a finite float32 below the largest; small exponents are more frequent."""
    return rng.choice([rng.randrange(0x7f7fffff), rng.randrange(0x00ffffff),
                       rng.randrange(0x38000000, 0x48000000),
                       rng.randrange(1 << rng.randint(1, 23))])


def halfway():
    """The middle of two neighbours, exactly, or a little above or below."""
    bits = random_float()
    low, high = np.array([bits, bits + 1], np.uint32).view(np.float32).astype(float)
    middle = Decimal(low + (high - low) / 2)  # exact: 25 bits
    text = spelled(middle)
    head, mark, exponent = text.partition("E" if "E" in text else "e")
    nudge = rng.randrange(4)
    zeros = "0" * rng.choice([0, 1, 5, 40, 900])
    if nudge == 1:  # a little above
        head += ("" if "." in head else ".") + zeros + "1"
    elif nudge == 2:  # a little below: the last figure that is not 0 becomes one less
        last = max(i for i, c in enumerate(head) if c in "123456789")
        head = head[:last] + str(int(head[last]) - 1) + "".join(
            c if c == "." else "9" for c in head[last + 1:])
        head += ("" if "." in head else ".") + "9" * rng.choice([1, 20, 900])
    elif nudge == 3:
        head += ("" if "." in head else ".") + zeros
    return head + mark + exponent


def power():
    return rng.choice([f"1e{rng.randint(-50, 45)}", f"{2 ** rng.randint(0, 130)}",
                       spelled(Decimal(2.0 ** rng.randint(-152, 0))),
                       f"{10 ** rng.randint(0, 40)}", f"9.{'9' * rng.randint(1, 30)}e"
                       f"{rng.randint(-47, 38)}", f"{2 ** 64 + rng.randint(-3, 3)}",
                       f"{2 ** 63 + rng.randint(-3, 3)}", f"{2 ** 24 + rng.randint(-5, 5)}"])


def extreme():
    largest = Decimal(FLT_MAX)
    limit = largest + Decimal(2) ** 103  # From here on the result is inf.
    least = Decimal(2.0 ** -150)  # Up to here the result is 0.
    fixed = ["1e400", "-1e400", "1e-400", "1e999999999999", "-1e-99999999999999999999",
             "0e999999999", "1e2147483648", "1e-2147483649", "1e18446744073709551616",
             "1e4294967297", "-0", "+0.0", "-.0e5", "0." + "0" * 400 + "1e401",
             "1" + "0" * 400 + "e-400", "0" * 1000 + "7", "0." + "0" * 1000 + "7e1000", "inf",
             "-INF", "+Infinity", "iNf", "nan", "NaN", "+NAN", "-nan", "5.", ".5", "-.5E+1", "00.",
             "1e00000000000000000000000000000000001",
             "1e-0", "3.4028235e38", "3.4028236e38", "1.1754943508222875e-38", "1.4e-45", "7e-46",
             f"{limit:f}", f"{limit:f}.{'0' * 800}1", f"{limit - 1:f}.{'9' * 30}", f"{largest:f}",
             f"{least:f}", f"{least:f}{'0' * 800}1", f"{least:e}", "1" * 1500, "." + "3" * 1500,
             "1" + "0" * 38, "1" + "0" * 39, f"{'9' * 800}e-790", f"0.{'0' * 44}1401298464324817"]
    return rng.choice(fixed)


def number():
    return rng.choice([printed, printed, random_digits, random_digits, halfway, halfway, halfway,
                       power, extreme])()


# ---- rows ----

def row_for_sklearn():
    index = sorted(rng.sample(range(200), rng.randint(0, 12)))
    features = " ".join(f"{i}:{number()}" for i in index)
    return f"{number()} qid:{rng.randint(-10**18, 10**18)} {features}".strip()


def blank(least=1):
    return "".join(rng.choices(" \t\v\f", (9, 3, 1, 1), k=rng.randint(least, 3)))


def row_weighted(values=True):
    """Everything that a good row can have: unsorted indexes, white space, comments. The rows of a file have values, or none
    has."""
    colon = f"{blank(0)}:{blank(0)}" if rng.random() < .2 else ":"
    index = [rng.randrange(rng.choice([5, 200, 2 ** 31])) for _ in range(rng.randint(0, 12))]
    features = [f"{i}{colon}{number()}" if values else f"{i}" for i in index]
    label = ",".join(number() for _ in range(rng.choice([1, 1, 1, 2, 3])))
    words = [f"{label}{colon}{number()}", f"qid:{rng.randint(-2**63, 2**63 - 1)}", *features]
    text = blank(0) if rng.random() < .1 and values else ""
    if text and colon != ":" or text and label.isdigit():
        text = ""  # This would be a feature.
    text += "".join(word + blank() for word in words)
    return text.rstrip(" ") + rng.choice(["", "", "# comment 1:2", "#"])


def joined(rows):
    """Joined with all kinds of line ends, empty lines and comments."""
    out = b""
    for row in rows:
        out += row.encode() + rng.choice([b"\n", b"\n", b"\r\n", b"\r"])
        out += rng.choice([b"", b"", b"", b"\n", b"\r\n", b" \t\n", b"# 1 2:3\n", b"\r\r",
                           b"  #\r"])
    return out


BYTES = b"0123456789+-.eE:,#  \t\v\fqidnaf\0x\r\n/;\xc2\xa0~"


def broken(row):
    """One or two bytes of a row put in, taken out or changed."""
    row = bytearray(row.encode())
    for _ in range(rng.randint(1, 2)):
        at = rng.randrange(len(row) + 1)
        row[at:at + rng.randint(0, 1)] = bytes([rng.choice(BYTES)][:rng.randint(0, 2)])
    return bytes(row)


def plain_row():
    features = " ".join(f"{rng.randrange(50)}:{rng.randint(-9, 9) / 4:g}" for _ in range(3))
    return f"{rng.randint(-5, 5)} {features}"


def short_row():
    """A row so short that a change hits something relevant."""
    label, weight, qid = rng.randint(-5, 5), rng.randint(1, 3), rng.randint(1, 20)
    return f"{label}:{weight} qid:{qid} {rng.randrange(50)}:2.5"


def broken_rows(make):
    """Good rows come first, so that the file is recognised."""
    good = [make().encode() for _ in range(50)]
    return b"\n".join(good + [broken(make()) for _ in range(ROWS)]) + b"\n"


# ---- checks ----

def npz(name, plan="batch=all"):
    file = path(name, "batches", plan, "npz/000000.npz")
    return svm_model.read_npz(content(file), file)


def check_strtof(name, data):
    """Every number of a file; in all, and in batches of a shuffle."""
    ds = svm_model.Dataset([(name, data)])
    everything = list(range(len(ds.rows)))
    equal([row.text for row in ds.rows if row.error], [], f"{name}: all rows are good")
    got = npz(name)
    svm_model.check_csr(got, ds.csr(everything), ds, name)
    for field, array in ds.fields.items():
        same_array(got[field], array, f"{name}: {field}")
        same_array(np.load(path(name, f"batches/batch=all/npy/000000.{field}.npy")), array, field)
    got = npz(name, "batch=100,seed=3/epoch=2")
    svm_model.check_csr(got, ds.csr(got["index"].tolist()), ds, f"{name}: a batch")
    for field, array in ds.fields.items():
        same_array(got[field], array[got["index"]], f"{name}: {field} of a batch")
    if ds.features < svm_model.X_MAX:
        file = path(name, "batches/batch=100,seed=3/epoch=2/npy/000000.x.npy")
        svm_model.check_x(file, ds, got["index"].tolist(), False)
    return ds


def rounded(got, want, what):
    """float32 against values rounded to float64 first: they may differ only where that rounding
    gave the middle of two float32, or a similar case below the normal numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        same = (got == want.astype(np.float32)) | (np.isnan(got) & np.isnan(want))
        small = (np.abs(want) < 2.0 ** -126) & (np.abs(got - want) <= 2.0 ** -150)
    middle = want.view(np.uint64) & np.uint64(2 ** 29 - 1) == 2 ** 28
    bad = np.flatnonzero(~(same | middle | small))
    equal([(got[i], want[i]) for i in bad[:5]], [], what)
    equal(np.mean(same) > .5, True, what)


def check_sklearn(name):
    try:
        from sklearn.datasets import load_svmlight_file
    except ImportError:
        print("skipped: scikit-learn is missing (package python3-sklearn)")
        return
    got = npz(name)
    for file in (f"{SOURCE}/{name}", path(name, "batches/batch=all/svm/000000.svm")):
        x, y, qid = load_svmlight_file(file, n_features=int(got["shape"][1]), zero_based=True,
                                       query_id=True, dtype=np.float64)
        equal(x.indptr.tolist(), got["indptr"].tolist(), f"{file}: rows")
        equal(x.indices.tolist(), got["indices"].tolist(), f"{file}: indices")
        equal(qid.tolist(), got["qid"].tolist(), f"{file}: qid")
        rounded(got["data"], x.data, f"{file}: values")
        rounded(got["label"], y, f"{file}: labels")


def check_broken(name, data, skip):
    """The bad rows show as EIO, and in the rows that remain when they are skipped."""
    ds = svm_model.Dataset([(name, data)], skip=skip)
    bad = [i for i, row in enumerate(ds.rows) if row.error]
    svm = content(path(name, "batches/batch=all/svm/000000.svm"))
    want = [row.text for row in ds.rows]
    equal(first_difference(svm.split(b"\n")[:-1], want), None, f"{name}: rows")
    if skip:
        got = npz(name)
        svm_model.check_csr(got, ds.csr(range(len(ds.rows))), ds, name)
        for field, array in ds.fields.items():
            same_array(got[field], array, f"{name}: {field}")
        return
    equal(ROWS * .1 < len(bad) < ROWS, True, f"{name}: {len(bad)} bad rows")
    for sample, row in enumerate(ds.rows):
        file = path(name, f"samples/npz/{sample:06d}.npz")
        try:
            data = content(file)
        except OSError:
            data = None
        equal(data is None, bool(row.error), f"{file}: {row.text!r} cannot be read")
        if data and sample % 7 == 0:
            got = np.load(io.BytesIO(data))
            same_array(got["data"], ds.csr([sample])["data"], f"{file}: {row.text!r}")


def first_difference(got, want):
    for g, w in zip(got, want):
        if g != w:
            return g, w
    return None if len(got) == len(want) else (len(got), len(want))


FILES = {"sklearn.txt": "\n".join(row_for_sklearn() for _ in range(ROWS)).encode(),
         "anyhow.txt": joined([row_weighted() for _ in range(ROWS)]),
         "bare.txt": joined([row_weighted(False) for _ in range(ROWS // 4)])}
BROKEN = {"broken.txt": broken_rows(plain_row), "broken-short.txt": broken_rows(short_row),
          "broken-weights.txt": broken_rows(row_weighted)}
for name, data in (FILES | BROKEN).items():
    write(name, data)

with mounted():
    for name, data in FILES.items():
        check_strtof(name, data)
    check_sklearn("sklearn.txt")
    for name, data in BROKEN.items():
        check_broken(name, data, False)
with mounted(SOURCE, "bad_rows=skip", log="log.skip"):
    for name, data in (FILES | BROKEN).items():
        check_broken(name, data, True)
