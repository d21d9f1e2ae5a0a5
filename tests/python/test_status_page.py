#!/usr/bin/python3
"""The page of `epochfs status --html`. With an argument, writes one to that file, for a browser: tests/mount/cli/case-status-page.py."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "python"))
from epochfs._status_page import page  # noqa: E402

NOW = 1790000000
STATUS = {  # a mount of hostile names that has served for an hour
    "version": "1.0", "pid": 77, "source": "https://host/<script>alert(1)</script>&\"'\a/a-very-long-path-of-many-words",
    "mountpoint": "/mnt/<b>x", "started": 1789990000, "datasets": 2, "datasets_ready": 1, "bytes_served": 123456789, "read_errors": 1,
    "last_read_error": "a < b", "memory": {"resident_bytes": 10485760},
    "plans": [{"dataset": "train", "plan": "batch=128,seed=7" if i < 2 else None, "epoch": i, "batch": 100 * i, "batches": 469,
               "wait_share": 0.1, "staged_share": 0.25} for i in range(3)],
    "remote": {"demand_bytes": 1000, "background_bytes": 2000, "distinct_bytes": 3000, "hits": 90, "misses": 10, "waits": 5,
               "wait_seconds": 2.5, "staged_bytes": 3000, "total_bytes": 6000}}


def history(n):
    return {"samples": [{"time": 1789996400 + 10 * i + (600 if i > 200 else 0), "served_bytes": i * 1000000, "staged_bytes": i * 16,
                         "total_bytes": 6000, "hits": i * 9, "misses": i // 3, "wait_seconds": i // 7 + .5,
                         "batches_per_second": i % 50 + .25} for i in range(n)]}


def made(n):
    return page(STATUS, history(n), ["batch 1 of 2"] * 3, NOW)


class Page(unittest.TestCase):
    def test_names_are_text(self):
        text = made(360)
        for want in ("&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;'?/a-very", "<title>epochfs /mnt/&lt;b&gt;x</title>", "a &lt; b"):
            self.assertIn(want, text)
        self.assertEqual((text.count("<script"), text.count("http")), (0, 1), "the source: nothing is fetched")

    def test_drawings(self):
        text = made(360)
        self.assertEqual((text.count("<svg"), text.count("<polyline"), text.count("nan")), (5, 10, 0))  # the pause breaks each line
        self.assertEqual(text.count('class="plan"'), 3)
        for want in ('<polyline points="', "width:21%", "samples, one after another", "batch 1 of 2; waited 10 % of the time"):
            self.assertIn(want, text)
        self.assertEqual(made(1).count("<svg"), 0)
        self.assertEqual(made(3000).count("<svg"), 5)

    def test_little(self):
        for status in ({}, None, [], {"plans": 3, "remote": None, "started": -1, "memory": "x", "datasets": True}):
            text = page(status, None, [], NOW)
            self.assertEqual(text.count("<svg"), 0)
            self.assertIn("None is read.", text)

    def test_figures(self):
        samples = [{"time": NOW - 20, "hits": 0}, {"time": NOW - 10, "hits": 5, "batches_per_second": 13238.93},
                   {"time": NOW, "hits": 5, "batches_per_second": 1235.97}]
        text = page({"remote": {}}, {"samples": samples}, [], NOW)
        self.assertIn("Batches per second</span><b>1236</b></figcaption><small>13239</small>", text)
        self.assertIn("(hit share)</span></figcaption>", text)  # no read, no share
        self.assertNotIn("e+", text)

    def test_clock_set_back(self):
        samples = [(1790003600, 7777), (1790003610, 7777), (1789999990, 3), (1790000000, 5), (1790000010, 5)]
        text = page({}, {"samples": [{"time": at, "batches_per_second": v} for at, v in samples]}, [], NOW)
        self.assertIn("<span>20 s ago</span>", text)
        self.assertIn('<polyline points="500.0,0.0 1000.0,0.0 "/>', text)
        self.assertNotIn("7777", text)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w", encoding="utf-8") as f:
            f.write(made(360))
    else:
        sys.exit(unittest.main())
