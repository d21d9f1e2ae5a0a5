#!/usr/bin/python3
"""gs://: objects that are stored packed are asked for as they are stored, and read as .gz files; a token is sent only to
who keeps it."""

import gzip
import os

from fake_s3 import FakeS3
from lib import PRIVATE, contains, content, equal, mounted, path, run

ROWS = b"".join(b'{"text": "line %06d"}\n' % i for i in range(5000))
STORED = gzip.compress(ROWS, mtime=0)

os.environ.update(HOME=PRIVATE, AWS_EC2_METADATA_DISABLED="true")
with FakeS3({"set/plain.jsonl": ROWS, "set/packed.jsonl": STORED}) as s3:
    s3.packed = {"set/packed.jsonl"}
    options = f"endpoint_url={s3.endpoint},cache={PRIVATE}/cache"
    with mounted("gs://data/set", options):
        for name in "plain.jsonl", "packed.jsonl":
            equal(content(path(name, "source", name)) == ROWS, True, name)
    equal(s3.bearers, {""}, "tokens")
    os.environ["CLOUDSDK_AUTH_ACCESS_TOKEN"] = "ya29.secret"
    said = run("info", "-o", options, "gs://data/set")
    contains(said, "token of $CLOUDSDK_AUTH_ACCESS_TOKEN", "5000")
    equal("ya29" in said, False, "the token in what is printed")
    equal(s3.bearers, {"", "ya29.secret"}, "tokens")
    contains(run("info", "-o", "endpoint_url=http://storage.example", "gs://data/set", code=2), "expected https")
