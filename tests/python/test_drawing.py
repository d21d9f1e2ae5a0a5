#!/usr/bin/python3
"""Numbers and words as characters of a terminal, in the drawings of `epochfs info`."""

import os
import sys
import unittest

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "python"))
from epochfs._drawing import Screen, width  # noqa: E402

GREY, PLAIN, ASCII = Screen(80, True, True), Screen(80, True, False), Screen(80, False, True)


class Characters(unittest.TestCase):
    def test_words(self):
        for screen, words, columns, want in (
                (PLAIN, b"one", 5, "one  "), (PLAIN, b"one", 2, "o…"), (ASCII, b"x 12", 3, "x ~"), (PLAIN, b"", 2, "  "), (PLAIN, "äöü".encode(), 2, "ä…"),
                (PLAIN, b"one", 0, ""),
                (ASCII, "ä".encode(), 4, "??  "),
                (PLAIN, b"a\033[2J\x7f\t", 9, "a?[2J??  "), (PLAIN, b"\xc2\x9b31m", 6, "??31m "),  # CSI in UTF-8
                (PLAIN, b"\xff\xc3", 3, "?? "), (PLAIN, b"\xe2\x96", 3, "?? "),                    # no UTF-8; cut
                (PLAIN, "a\u202eb".encode(), 6, "a???b "),  # all that follows would be turned round
                (PLAIN, b"\xc3(\xc0\x80", 5, "?(?? "),       # not the second byte; overlong
                (PLAIN, "\u4e2d\u6587a".encode(), 6, "\u4e2d\u6587a "), (PLAIN, "\u4e2d\u6587".encode(), 3, "\u4e2d…"),
                (PLAIN, "\U0001f600".encode(), 1, "…"), (ASCII, "\u4e2d".encode(), 4, "??? ")):
            self.assertEqual(screen.cut(screen.plain(words), columns), want, words)
        self.assertEqual(width(PLAIN.plain("\u4e2d\uac00\uff21aé".encode())), 8)

    def test_bars(self):
        heights = np.array([-1, 0, .5, 1, 2, np.nan])
        self.assertEqual((PLAIN.bars(heights), ASCII.bars(heights)), ("  ▄██ ", "  +@@ "))

    def test_pixels(self):
        upper, lower = np.array([0., 1, 1]), np.array([0., 0, 1])
        self.assertEqual(GREY.pixels(upper, lower), "\033[38;5;232m\033[48;5;232m▀\033[38;5;255m▀\033[48;5;255m▀\033[0m")
        self.assertEqual((PLAIN.pixels(upper, lower), ASCII.pixels(upper, lower)), (" ▒█", " +@"))


if __name__ == "__main__":
    sys.exit(unittest.main())
