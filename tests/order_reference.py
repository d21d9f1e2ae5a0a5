#!/usr/bin/python3
# slow: all orders and plans, in Python
"""The reference order: the Python block of docs/spec/order.md, loaded as a module.

    import order_reference; order_reference.load().order(seed, epoch, N, pos)

    order_reference.py vectors    write tests/order_vectors.txt, mix_vectors.txt and length_vectors.txt
    order_reference.py check      these files, the tables of the pages and the rules agree

load_mix() is the same for docs/spec/order-mix.md: load_mix().Mix("a*7+b*3", [100, 50]).at(seed, epoch, pos), and
load_length() for docs/spec/order-length.md: load_length().LengthBatches(lengths, "batch=tokens:9,seed=7", epoch).batch(k).
"""

import functools
import hashlib
import os
import re
import sys
import types

import page_blocks

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "..", "docs", "spec", "order.md")
VECTORS = os.path.join(HERE, "order_vectors.txt")
MIX_PAGE = os.path.join(HERE, "..", "docs", "spec", "order-mix.md")
MIX_VECTORS = os.path.join(HERE, "mix_vectors.txt")
LENGTH_PAGE = os.path.join(HERE, "..", "docs", "spec", "order-length.md")
LENGTH_VECTORS = os.path.join(HERE, "length_vectors.txt")


def page(path=PAGE):
    with open(path, encoding="utf-8") as f:
        return f.read()


def load():
    """The reference as a module: mix, key, permute, unpermute, order, ..."""
    module = types.ModuleType("order_v1")
    exec(compile(page_blocks.take("docs/spec/order.md", "import bisect"), PAGE, "exec"), module.__dict__)
    for name in ("permute", "unpermute"):  # a place is asked for several times
        setattr(module, name, functools.lru_cache(1 << 20)(getattr(module, name)))
    return module


def load_mix():
    """The reference of mixes as a module: table, Mix, and what load() has."""
    module = types.ModuleType("order_mix_v1")
    module.__dict__.update(load().__dict__)
    exec(compile(page_blocks.take("docs/spec/order-mix.md", "import heapq"), MIX_PAGE, "exec"), module.__dict__)
    return module


def load_length():
    """The reference of batches by length: LengthBatches, and what load() has."""
    module = types.ModuleType("order_length_v1")
    module.__dict__.update(load().__dict__)
    exec(compile(page_blocks.take("docs/spec/order-length.md", "LANE = 2**62"), LENGTH_PAGE, "exec"), module.__dict__)
    module.LengthBatches.cuts = functools.lru_cache(1 << 12)(module.LengthBatches.cuts)
    return module


NS = [13, 31, 32, 33, 100, 255, 256, 1000, 4097, 60000, 65536, 10**6, 2**31 - 1, 10**9, 2**32 - 1,
      2**32, 2**32 + 1, 10**12, 2**40 + 7, 2**47 + 1, 2**48 - 1, 2**48]
SEEDS = [0, 1, 7, 42, 2**32, 2**63, 2**64 - 1]
EPOCHS = [0, 1, 2, 99, 10**12, 2**64 - 1]
WINDOWS = [0, 0, 0, 1, 2, 3, 7, 8, 64, 1000, 4096, 10**6, 2**40, 2**48, 2**64 - 1]


def vectors(ref):
    """Lines `N seed epoch window position sample`, window 0 being shuffle=full."""
    lines = []

    def add(N, seed, epoch, window, pos):
        sample = ref.order(seed, epoch, N, pos, window)
        lines.append(f"{N} {seed} {epoch} {window} {pos} {sample}\n")

    for N in range(1, 11):  # whole orders
        for window in (0, 1, 2, 3):
            for pos in range(N):
                add(N, 7, N, window, pos)
    for window in (2, 3):  # several groups, and a short block that is not always in the last
        for epoch in range(3):
            for pos in range(41):
                add(41, 5, epoch, window, pos)
    state = 0

    def draw(below):
        nonlocal state
        state += ref.G
        return ref.mix(state & ref.U64) % below

    for i in range(32 * len(NS)):  # ends, then anywhere
        N = NS[i % len(NS)]
        seed = SEEDS[draw(len(SEEDS))] if draw(2) else draw(2**64)
        epoch = EPOCHS[draw(len(EPOCHS))]
        window = WINDOWS[draw(len(WINDOWS))]
        for pos in ((0, N - 1) if i < 4 * len(NS) else (draw(N), draw(N))):
            add(N, seed, epoch, window, pos)
    return "".join(lines) + plan_vectors(ref)


DATA_PLANS = [
    "batch=8,only=some", "batch=8,only=some,seed=7", "batch=8,only=some,take=10%:90%,split=1@1:2,seed=7",
    "batch=8,draw={}:uniform", "batch=8,draw={}:uniform,seed=7", "batch=8,draw={}:balanced",
    "batch=8,draw={}:balanced,seed=7", "batch=8,draw={}:weight", "batch=8,draw={}:weight,seed=7",
    "batch=8,only=some,draw={}:weight,seed=7,shuffle=window:9", "batch=8,part=1of2,draw={}:balanced,seed=9",
    "batch=6,classes=3x2", "batch=6,classes=3x2,seed=7", "batch=8,classes=4x2,seed=7,rank=1of2",
    "batch=5,classes=1x5,seed=2^64-1", "batch=6,only=some,classes=2x3,seed=7,limit=20,tail=drop",
]


def data_of(N):
    """The fields and the list of the vectors of plans, which tests/unit/fs/plan/test_vectors.c also has."""
    return {"fields": {"label": [i * i % 7 for i in range(N)], "weight": [float(i % 5) for i in range(N)]},
            "lists": {"some": [(7 * i + 3) % N for i in range(N // 2)]}}


def plan_vectors(ref):
    """Lines `plan N name epoch batch: samples`."""
    lines = []
    for N in (11, 12, 100, 997):
        for name in DATA_PLANS:
            for draws in ((3, N, 2 * N + 1) if "{}" in name else (0,)):
                plan = name.format(draws).replace("2^64-1", str(2**64 - 1))
                p = ref.Plan(N, plan, **data_of(N))
                for epoch, batch in ((0, 0), (1, p.batches // 2), (2**64 - 1, p.batches - 1)):
                    if p.batches:
                        samples = ref.batch_samples(N, plan, epoch, batch, **data_of(N))
                        lines.append(f"plan {N} {plan} {epoch} {batch}: {' '.join(map(str, samples))}\n")
    for N, draws in ((10**9, 10**6), (3, 2**48), (2**48, 2**48 - 1), (2**48 - 1, 5)):
        for seed in ("", ",seed=7", f",seed=7,shuffle=window:{2**20}"):
            plan = f"batch=4,draw={draws}:uniform{seed}"
            for epoch, batch in ((0, 0), (2**63, draws // 8)):
                samples = ref.batch_samples(N, plan, epoch, batch)
                lines.append(f"plan {N} {plan} {epoch} {batch}: {' '.join(map(str, samples))}\n")
    return "".join(lines)


def number(text):
    """`7`, `10^9`, `2^64-1`"""
    m = re.fullmatch(r"(\d+)(?:\^(\d+)(?:-(\d+))?)?", text)
    return int(m[1]) ** int(m[2] or 1) - int(m[3] or 0)


def listed(N, seed, epoch, window, ref):
    """A whole order, made the long way from the definition: lists of lists."""
    def shuffled(items, lane):
        s = ref.key(seed, epoch, lane, len(items))
        return [items[ref.permute(s, len(items), i)] for i in range(len(items))]

    if not window:
        return shuffled(list(range(N)), 0)
    blocks = [list(range(i, min(i + window, N))) for i in range(0, N, window)]
    blocks = shuffled(blocks, 1)
    order = []
    for g in range(0, len(blocks), 8):
        order += shuffled(sum(blocks[g:g + 8], []), 2 + g // 8)
    return order


def check_orders(ref):
    for N in list(range(1, 14)) + [50, 97]:
        for window in (0, 1, 2, 3, 5, 12, 13, 100):
            got = [ref.order(N, 1, N, pos, window) for pos in range(N)]
            assert got == listed(N, N, 1, window, ref), (N, window)
            assert sorted(got) == list(range(N)), (N, window)
            back = [ref.order_inverse(N, 1, N, sample, window) for sample in got]
            assert back == list(range(N)), (N, window)


def check_plans(ref):
    """Parts and ranks together are the list; every rank of drop and wrap is equally long."""
    for N in (0, 1, 5, 12, 29):
        for parts, ranks, batch in ((1, 1, 4), (1, 3, 2), (3, 2, "all"), (7, 1, 1), (2, 5, 3)):
            for tail in ("keep", "drop", "wrap"):
                seen = []
                for part in range(parts):
                    counts = set()
                    for rank in range(ranks):
                        name = (f"batch={batch},part={part}of{parts},rank={rank}of{ranks},"
                                f"seed=3,shuffle=window:2,tail={tail}")
                        count = ref.batch_count(N, name)
                        batches = [ref.batch_samples(N, name, 4, b) for b in range(count)]
                        assert batch != "all" or count == 1, (N, name)
                        if batch != "all":
                            full = batches[:-1] if tail == "keep" else batches
                            assert all(len(b) == batch for b in full), (N, name)
                            assert all(0 < len(b) <= batch for b in batches), (N, name)
                        counts.add(tuple(map(len, batches)))
                        seen += sum(batches, [])
                    assert tail == "keep" or len(counts) == 1, (N, name)
                everything = list(range(N))
                if tail == "keep":
                    assert sorted(seen) == everything, (N, name)
                elif tail == "drop":
                    assert len(set(seen)) == len(seen), (N, name)
                else:
                    assert sorted(set(seen)) == everything, (N, name)


def check_data_plans(ref):
    """Draws and classes: each position leads back to itself, and each place comes as often as is said."""
    for N in (1, 2, 9, 30):
        data = data_of(N)
        labels, weights = data["fields"]["label"], data["fields"]["weight"]
        for seed in ("", ",seed=5", ",seed=5,shuffle=window:4"):
            for draws in (1, 7, 30, 95):
                for how in ("uniform", "balanced", "weight"):
                    if how == "weight" and not any(weights):
                        continue
                    p = ref.Plan(N, f"batch=all,draw={draws}:{how}{seed}", **data)
                    for epoch in (0, 1):
                        shown = epoch_of(p, epoch)
                        for i in range(N):
                            share = {"uniform": 1 / N, "weight": weights[i] / max(1, sum(weights)),
                                     "balanced": 1 / len(set(labels)) / labels.count(labels[i])}[how] * draws
                            assert abs(shown.count(i) - share) < 1, (p.p, epoch, i)
                            back = list(p.order(epoch).positions(i))
                            assert back == [k for k, x in enumerate(shown) if x == i], (p.p, epoch, i)
        for P, K in ((1, 1), (2, 3), (1, 9)):
            if P > len(set(labels)):
                continue
            for seed in ("", ",seed=5"):
                p = ref.Plan(N, f"batch={P * K},classes={P}x{K}{':label' if P == 2 else ''}{seed}", **data)
                shown = epoch_of(p, 3)
                for b in range(0, len(shown), P * K):
                    of = [labels[x] for x in shown[b:b + P * K]]
                    assert all(len(set(of[i:i + K])) == 1 for i in range(0, P * K, K)), p.p
                    assert len(set(of)) == P, p.p
                for i in range(N):
                    back = sorted(p.order(3).positions(i))
                    assert back == [k for k, x in enumerate(shown) if x == i], (p.p, i)


def epoch_of(plan, epoch):
    return [plan.sample(epoch, j) for j in range(plan.elements)]


def check_tables(ref):
    """The rows of the two tables under `## Test vectors`."""
    orders = plans = 0
    for line in page().split("## Test vectors")[1].splitlines():
        cells = [c.strip().strip("`") for c in line.strip("|").split("|")]
        if line[:2] != "| " or cells[0] == "N":
            continue
        N, want = number(cells[0]), [int(w) for w in cells[-1].split()]
        if cells[1].startswith("batch="):
            name, epoch, batches, b = cells[1], number(cells[2]), number(cells[3]), number(cells[4])
            data = data_of(N) if N < 1000 else {}
            assert ref.batch_count(N, name, **data) == batches, line
            assert ref.batch_samples(N, name, epoch, b, **data) == want, line
            plans += 1
        else:
            window = int(cells[3].split(":")[1]) if ":" in cells[3] else None
            seed, epoch = number(cells[1]), number(cells[2])
            got = [ref.order(seed, epoch, N, pos, window) for pos in range(min(N, 8))]
            assert got == want, line
            back = [ref.order_inverse(seed, epoch, N, sample, window) for sample in want]
            assert back == list(range(len(want))), line
            orders += 1
    assert orders >= 20 and plans >= 10, (orders, plans)
    return orders, plans


MIXES = [
    ("a*7+b*3", [50, 20]), ("a*7+b*3/first", [50, 20]), ("a*7+b*3/all", [50, 20]), ("a*0.25+b*0.5+c*1/40", [3, 1, 100]),
    ("a*1", [5]), ("a*2+a*1+b*5", [11, 11, 6]), ("a*9+b*1@13:a*1+b*1+c*2@30:c*1+b*3/20", [40, 7, 9]),
    ("a*61+b*17+c*15+d*4", [10**6, 3, 10**9, 2**40]), ("a*65535+b*1", [2**46, 2**46]),
    ("a*2+b*115+c*2+d*1+e*7+f*1+g*2+h*2/281474976710656", [9, 10**4, 1, 2, 77, 5, 60000, 8]),
]


def mix_vectors(ref):
    """Lines `TEXT SIZES LENGTH SEED EPOCH WINDOW POSITION SOURCE PLACE`; seed -: without."""
    lines = []
    state = 7

    def draw(below):
        nonlocal state
        state += ref.G
        return ref.mix(state & ref.U64) % below

    for text, sizes in MIXES:
        m = ref.Mix(text, sizes)
        for i in range(96):
            seed = None if i < 16 else SEEDS[draw(len(SEEDS))]
            epoch = 0 if i < 32 else EPOCHS[draw(len(EPOCHS))]
            window = 0 if i < 64 or seed is None else WINDOWS[draw(len(WINDOWS))]
            position = (i % 16) % m.length if i < 48 else draw(m.length)
            source, place = m.at(seed, epoch, position, window)
            lines.append(f"{text} {','.join(map(str, sizes))} {m.length} {'-' if seed is None else seed} {epoch} {window} "
                         f"{position} {source} {place}\n")
    return "".join(lines)


def check_mixes(ref):
    """Passes are whole, shares hold, weights that change move nothing before them."""
    for text, sizes in MIXES[:7]:
        m = ref.Mix(text, sizes)
        seen, epochs = [[] for _ in sizes], 12
        for window in (0, 4):
            for epoch in range(epochs):
                for pos in range(m.length):
                    source, place = m.at(3, epoch, pos, window)
                    seen[source].append(place)
            for places, size in zip(seen, sizes):
                for k in range(0, len(places) - size + 1, size):
                    assert sorted(places[k:k + size]) == list(range(size)), (text, window)
                places.clear()
        assert [m.position(*m.element(p)) for p in range(200)] == list(range(200)), text
    for w in ([5, 3, 2], [1, 9], [2, 115, 2, 1, 7, 1, 2, 2], [1000] + 200 * [1]):
        taken = [0] * len(w)
        for n, (d, _) in enumerate(ref.table(w), 1):
            taken[d] += 1
            assert all(abs(t * sum(w) - n * v) < sum(w) for t, v in zip(taken, w)), (w, n)
    first, second = (ref.Mix(text, [40, 7]) for text in ("a*9+b*1", "a*9+b*1@13:b*1"))
    assert [first.at(1, 0, p) for p in range(13)] == [second.at(1, 0, p) for p in range(13)]
    digest = hashlib.sha256(bytes(d for d, _ in ref.table([2, 115, 2, 1, 7, 1, 2, 2]))).hexdigest()
    assert digest[:16] == "218ecebb015508d8" and digest[:16] in page(MIX_PAGE), digest


def mix_row(text, sizes, seed, epoch, window, ref):
    m = ref.Mix(text, sizes)
    return " ".join(f"{d}:{x}" for d, x in (m.at(seed, epoch, pos, window) for pos in range(8)))


def check_mix_tables(ref):
    periods = rows = 0
    for line in page(MIX_PAGE).split("## Test vectors")[1].splitlines():
        cells = [c.strip().strip("`") for c in line.strip("|").split("|")]
        if line[:2] != "| " or cells[0] in ("weights", "mix"):
            continue
        if len(cells) == 2:
            got = " ".join(str(d) for d, _ in ref.table(list(map(int, cells[0].split()))))
            assert got == cells[1], line
            periods += 1
            continue
        window = int(cells[4].split(":")[1]) if ":" in cells[4] else None
        seed = int(cells[2]) if cells[2] != "-" else None
        got = mix_row(cells[0], list(map(number, cells[1].split())), seed, number(cells[3]), window, ref)
        assert got == cells[5], (line, got)
        rows += 1
    assert periods >= 4 and rows >= 6, (periods, rows)
    return periods + rows


def check_mix(ref):
    with open(MIX_VECTORS, encoding="ascii") as f:
        text = f.read()
    if text != mix_vectors(ref):
        sys.exit(f"{MIX_VECTORS}: differs from what docs/spec/order-mix.md gives; after a release it never may")
    check_mixes(ref)
    rows = check_mix_tables(ref)
    print(f"{text.count(chr(10))} vectors of mixes, {rows} rows of the page: ok")


def length_batches(ref, N, plan, epoch):
    some = {"some": list(range(0, 100, 3))} if "only=" in plan else None
    return ref.LengthBatches([1 + ref.mix(s) % 40 for s in range(N)], plan, epoch, lists=some)


def random_length_plan(draw):
    """N and a plan, whose words are anything that goes together."""
    def pick(*words):
        return words[draw(len(words))]

    W = 1 + draw(40)
    N = pick(draw(12), draw(160))
    words = [f"batch=tokens:{pick(1 + draw(40), 20 + draw(400))}{pick('', f':{1 + draw(9)}')}", f"bucket={W}"]
    if draw(4) == 0:
        words = [f"batch={1 + draw(9)}", ""]
        words[1] = f"bucket={int(words[0][6:]) * (1 + draw(5))}"
    quad = pick("", f"quad={1 + draw(60)}")
    words += [quad if ":" in words[0] else "", pick("", f"group={1 + draw(9)}"), pick("", "take=10%:90%"),
              pick("", "", f"length={draw(20)}:{21 + draw(20)}") if N > 60 else "",
              pick("", f"split={draw(2)}@2:1") if N > 5 else "", pick("", f"part={draw(2)}of2")]
    seed = pick("", f"seed={draw(1000)}")
    words += [seed, pick("", f"shuffle=window:{1 + draw(20)}") if seed else "", pick("", f"draw={draw(200)}:uniform") if N > 20 else ""]
    R = 1 + draw(5)
    words += [pick("", f"rank={draw(R)}of{R}"), pick("", "tail=drop", "tail=wrap")]
    return N, ",".join(w for w in words if w), draw(3) if seed else 0


def length_vectors(ref):
    """Lines `N plan epoch batches batch: samples` of 300 plans, and the rule that each of them holds; then the
    rows of the page."""
    lines, state = [], 11

    def draw(below):
        nonlocal state
        state += ref.G
        return ref.mix(state & ref.U64) % below if below else 0

    while len(lines) < 300:
        N, plan, epoch = random_length_plan(draw)
        b = length_batches(ref, N, plan, epoch)
        if not b.batches:
            continue
        cuts = [b.cuts(w) for w in range(len(b.start) - 1)]
        shown = [cuts[w][b.cut_at(w, i)] for w in range(len(cuts)) for i in range(len(cuts[w]))]
        assert all(len(x) == 1 or b.budget is None or len(x) * max(map(b.cost, x)) <= b.budget for x in shown), plan
        if not (b.budget is None and "drop" in plan):
            assert sorted(sum(shown, [])) == sorted(b.plan.sample(epoch, x) for x in range(b.plan.n)), plan
        k = draw(b.batches)
        assert b.batch(k) == shown[(k * b.ranks + b.rank) % b.total], plan
        lines.append(f"{N} {plan} {epoch} {b.batches} {k}: {' '.join(map(str, b.batch(k)))}\n")
    for N, plan, epoch, _, k, _ in length_rows():
        b = length_batches(ref, int(N), plan, int(epoch))
        lines.append(f"{N} {plan} {epoch} {b.batches} {k}: {' '.join(map(str, b.batch(int(k))))}\n")
    return "".join(lines)


def length_rows():
    """The cells of the rows of the page: N, plan, epoch, batches, batch, samples."""
    for line in page(LENGTH_PAGE).split("## Test vectors")[1].splitlines():
        cells = [c.strip().strip("`") for c in line.strip("|").split("|")]
        if line[:2] == "| " and cells[0] != "N":
            yield cells


def check_length(ref):
    with open(LENGTH_VECTORS, encoding="ascii") as f:
        text = f.read()
    if text != length_vectors(ref):
        sys.exit(f"{LENGTH_VECTORS}: differs from what docs/spec/order-length.md gives; after a release it never may")
    rows = [f"{N} {plan} {epoch} {batches} {k}: {samples}" for N, plan, epoch, batches, k, samples in length_rows()]
    assert len(rows) >= 15 and set(rows) <= set(text.splitlines()), rows
    print(f"{text.count(chr(10))} vectors of batches by length, {len(rows)} rows of the page: ok")


class Word(int):
    """An integer from 0 to 2^64 - 1, with the arithmetic of such."""


for _name in ("add", "mul", "xor", "rshift"):
    setattr(Word, f"__{_name}__", lambda self, other, do=getattr(int, f"__{_name}__"): Word(do(self, other) % 2**64))
    setattr(Word, f"__r{_name}__", getattr(Word, f"__{_name}__"))


def formula(text, **values):
    """The values of the names in a line of formulas of the page, computed as it says."""
    text = re.sub(r"\(2r\+(\d)\) G", r"Word(2*r + \1) * G", text).replace("2G", "2 * G").strip()
    text = re.sub(r"floor\(\(\((.*?)\) mod 2\^64\) n / 2\^64\)", r"int(\1) * int(n) >> 64", text)
    text = re.sub(r"(K = .*) mod N", r"\1 % N", text).replace("        A = ", "; A = ")
    names = {name: Word(value) if isinstance(value, int) else value for name, value in values.items()}
    exec(text, dict(Word=Word), names)  # a page of this repository
    return names


def check_formulas(ref):
    """The page's formulas and its Python are the same functions."""
    of_mix, of_key = page_blocks.take("docs/spec/order.md", "z ^= z >> 30"), page_blocks.take("docs/spec/order.md", "s = mix(seed + G)")
    of_round, of_member = page_blocks.take("docs/spec/order.md", "K = mix(s + (2r+1) G)"), page_blocks.take("docs/spec/order.md", "K = floor(((u")

    def mix(z):
        return Word(formula(of_mix, z=z)["z"])

    words = [int.from_bytes(hashlib.sha256(bytes([i])).digest()[:8], "big") for i in range(40)] + [0, 1, 2**64 - 1]
    for i, (a, b) in enumerate(zip(words, words[1:])):
        assert mix(a) == ref.mix(a), f"mix({a})"
        N, epoch, lane, r = 1 + b % 10**9, b % 97, i % 5, i % ref.ROUNDS
        s = formula(of_key, seed=a, epoch=epoch, lane=lane, N=N, G=ref.G, mix=mix)["s"]
        assert s == ref.key(a, epoch, lane, N), f"key({a}, {epoch}, {lane}, {N})"
        x = a % N
        found = formula(of_round, s=s, r=r, N=N, G=ref.G, mix=mix)
        y = (found["K"] - x) % N
        swapped = y if ref.mix(max(x, y) ^ found["A"]) >> 63 else x
        assert swapped == ref.swap_or_not(s, N, x, [r]), f"round {r} of {s}"
        u, v = (mix(Word(s) + Word(2 * r + k) * ref.G) for k in (1, 2))
        t = ref.mix(ref.mix((epoch + ref.G) % 2**64) ^ lane)
        found = formula(of_member, u=u, v=v, t=t, n=N, G=ref.G, mix=mix)
        y = (found["K"] - x) % N
        swapped = y if ref.mix(max(x, y) ^ found["A"]) >> 63 else x
        assert swapped == ref.family(s, epoch, lane, N, x, [r]), f"round {r} of member ({epoch}, {lane})"


def check(ref):
    with open(VECTORS, encoding="ascii") as f:
        text = f.read()
    if text != vectors(ref):
        sys.exit(f"{VECTORS}: differs from what docs/spec/order.md gives; after a release it never may")
    check_formulas(ref)
    check_orders(ref)
    check_plans(ref)
    check_data_plans(ref)
    orders, plans = check_tables(ref)
    print(f"{text.count(chr(10))} vectors, {orders} orders and {plans} plans of the page: ok")


def main():
    command = sys.argv[1:]
    if command == ["vectors"]:
        text = vectors(load())
        with open(VECTORS, "w", encoding="ascii") as f:
            f.write(text)
        with open(MIX_VECTORS, "w", encoding="ascii") as f:
            f.write(mix_vectors(load_mix()))
        with open(LENGTH_VECTORS, "w", encoding="ascii") as f:
            f.write(length_vectors(load_length()))
    elif command == ["check"]:
        check(load())
        check_mix(load_mix())
        check_length(load_length())
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
