"""`epochfs status --html`: plain HTML with drawings in SVG. A drawing is stretched to the width of its column and has no text of
its own: labels are HTML next to it, and they stay readable at any width."""

from __future__ import annotations

import html
import json
import math
import sys
import time
from typing import Any, Callable

from ._human import bytes_of, percent_of, seconds_of

SAMPLES_MOST = 1000      # that are drawn
WIDTH, HEIGHT = 1000, 100  # of a drawing's own scale
GAP_S = 45               # seconds without a sample: the line is broken
STYLE = """\
:root{color-scheme:light dark;--ink:#1c2330;--soft:#5b6575;--line:#d5dae2;--back:#f6f7f9;--card:#fff;--mark:#2f6fbf;--bad:#b3261e}
@media(prefers-color-scheme:dark){:root{--ink:#e8ebf0;--soft:#a3adbb;--line:#38414f;--back:#14181f;--card:#1c222b;--mark:#6aa5ee;\
--bad:#ff8a80}}
*{box-sizing:border-box}body{margin:0;background:var(--back);color:var(--ink);font:16px/1.45 system-ui,sans-serif}
main{max-width:1100px;margin:0 auto;padding:20px 16px}
h1{font-size:1.35rem;margin:0;overflow-wrap:anywhere}h2{font-size:1.05rem;margin:28px 0 10px}
p{margin:6px 0;overflow-wrap:anywhere}.soft{color:var(--soft)}small,.axis{font-size:.875rem;color:var(--soft)}
.tiles,.charts{display:grid;gap:12px;grid-template-columns:repeat(auto-fit,minmax(min(100%,var(--least)),1fr))}
.tiles{--least:150px;margin:16px 0}.charts{--least:320px}
.tiles div,figure,.plan{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:10px 14px;margin:0}
.tiles b{display:block;font-size:1.35rem;font-variant-numeric:tabular-nums}
figcaption{display:flex;justify-content:space-between;gap:8px;flex-wrap:wrap}
svg{display:block;width:100%;height:110px;margin:6px 0 4px;border-bottom:1px solid var(--line);border-top:1px dotted var(--line)}
polyline{fill:none;stroke:var(--mark);stroke-width:2;vector-effect:non-scaling-stroke}
.axis{display:flex;justify-content:space-between}
.plan{margin-bottom:10px}.bar{height:10px;border-radius:5px;background:var(--line);margin:8px 0;overflow:hidden}
.bar i{display:block;height:100%;background:var(--mark)}
.bar,.bar i{-webkit-print-color-adjust:exact;print-color-adjust:exact}
.bad{color:var(--bad)}
"""
Moment = dict[str, float]


def value(about: Any, path: str) -> Any:
    """What a path of names with '.' between them has; None: nothing."""
    for name in path.split("."):
        about = about.get(name) if isinstance(about, dict) else None
    return about


def number(about: Any, path: str) -> float:
    """The number with this path; 0: there is none, or it is negative."""
    found = value(about, path)
    return max(found, 0) if isinstance(found, (int, float)) and not isinstance(found, bool) else 0


def whole(about: Any, path: str) -> int:
    """The same, as a whole number."""
    found = number(about, path)
    return int(found) if found < 2 ** 64 else 2 ** 64 - 1


def text(about: Any, path: str) -> str:
    """The string with this path, as text of the page."""
    found = value(about, path)
    return html.escape("".join(c if c.isprintable() else "?" for c in found)).replace("&#x27;", "'") if isinstance(found, str) else ""


# ---- drawings: a value for each moment; NaN: none ----

def _seconds(a: Moment, b: Moment) -> float:
    return b["time"] - a["time"]


def _staged(_: Moment, b: Moment) -> float:
    return 100 * min(b["staged_bytes"] / b["total_bytes"], 1) if b["total_bytes"] else math.nan


def _hit(a: Moment, b: Moment) -> float:
    hits = b["hits"] - a["hits"]
    every = hits + b["misses"] - a["misses"]
    return 100 * hits / every if every > 0 else math.nan


def _waiting(a: Moment, b: Moment) -> float:
    return max(b["wait_seconds"] - a["wait_seconds"], 0) / _seconds(a, b)


def _speed(_: Moment, b: Moment) -> float:
    return b["batches_per_second"]


def _served(a: Moment, b: Moment) -> float:
    return max(b["served_bytes"] - a["served_bytes"], 0) / 1e6 / _seconds(a, b)


Of = Callable[[Moment, Moment], float]
DRAWINGS: tuple[tuple[str, str, float, bool, Of], ...] = (  # title, unit, top of the scale (0: as needed), of a remote only
    ("Staged share of the source", " %", 100, True, _staged),
    ("Reads whose bytes were staged (hit share)", " %", 100, True, _hit),
    ("Readers that wait for the remote", "", 0, True, _waiting),
    ("Batches per second", "", 0, False, _speed),
    ("Megabytes served per second", "", 0, False, _served),
)


def _moments(history: Any) -> list[Moment]:
    """The samples. Those before the clock was set back have no place on the axis."""
    names = ("time", "served_bytes", "staged_bytes", "total_bytes", "hits", "misses", "wait_seconds", "batches_per_second")
    found: list[Moment] = []
    samples = value(history, "samples")
    for sample in samples if isinstance(samples, list) else ():
        now = {name: number(sample, name) for name in names}
        if found and now["time"] <= found[-1]["time"]:
            found.clear()
        if len(found) < SAMPLES_MOST:
            found.append(now)
    return found


def _figure(v: float, unit: str) -> str:
    """Three significant digits, never an exponent."""
    return (f"{v:.0f}" if v >= 999.5 else f"{v:.3g}") + unit


def _drawing(title: str, unit: str, top: float, of: Of, moments: list[Moment]) -> str:
    first, span = moments[0]["time"], moments[-1]["time"] - moments[0]["time"]
    values = [math.nan] + [of(a, b) if 0 < _seconds(a, b) <= GAP_S else math.nan for a, b in zip(moments, moments[1:])]
    top = max([top, *(v for v in values if not math.isnan(v))]) or 1
    lines, points = [], ""
    for moment, v in [*zip(moments, values), (moments[-1], math.nan)]:
        if not math.isnan(v):
            points += f"{(moment['time'] - first) / span * WIDTH:.1f},{HEIGHT - v / top * HEIGHT:.1f} "
        elif points:
            lines.append(f'<polyline points="{points}"/>')
            points = ""
    now = "" if math.isnan(values[-1]) else f"<b>{_figure(values[-1], unit)}</b>"
    return (f"<figure><figcaption><span>{title}</span>{now}</figcaption><small>{_figure(top, unit)}</small>"
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{title}">{"".join(lines)}</svg>'
            f'<div class="axis"><span>{seconds_of(int(span))} ago</span><span>now</span></div></figure>\n')


def _drawings(status: Any, moments: list[Moment]) -> str:
    if len(moments) < 2:
        return '<p class="soft">There is a sample each ten seconds; wait for the second one.</p>\n'
    return '<div class="charts">\n' + "".join(
        _drawing(title, unit, top, of, moments) for title, unit, top, remote, of in DRAWINGS
        if not remote or value(status, "remote") is not None) + "</div>\n"


# ---- the present ----

def _tiles(status: Any) -> str:
    tiles = [("datasets ready", f"{whole(status, 'datasets_ready')} of {whole(status, 'datasets')}", "")]
    if value(status, "remote") is not None:
        staged, total, hits, misses, waits = (whole(status, f"remote.{name}") for name in (
            "staged_bytes", "total_bytes", "hits", "misses", "waits"))
        received = whole(status, "remote.demand_bytes") + whole(status, "remote.background_bytes")
        tiles += [("staged", f"{percent_of(staged, total)} %", f"{bytes_of(staged)} of {bytes_of(total)}"),
                  ("reads without a wait", f"{percent_of(hits, hits + misses)} %", f"{hits} of {hits + misses}"),
                  ("waits for the remote", str(waits), f"{number(status, 'remote.wait_seconds'):.1f} s in all"),
                  ("received", bytes_of(received), f"{bytes_of(whole(status, 'remote.distinct_bytes'))} of them distinct")]
    tiles += [("served", bytes_of(whole(status, "bytes_served")), "the kernel's page cache serves more"),
              ("reads that failed", str(whole(status, "read_errors")), ""),
              ("memory of the daemon", bytes_of(whole(status, "memory.resident_bytes")), f"pid {whole(status, 'pid')}")]
    return '<div class="tiles">\n' + "".join(
        f"<div><small>{what}</small><b>{shown}</b>{f'<small>{more}</small>' if more else ''}</div>\n" for what, shown, more in tiles
    ) + "</div>\n"


def _plans(plans: Any, places: list[str]) -> str:
    shown = "".join(
        f'<div class="plan"><p><b>{text(plan, "dataset")}</b> {text(plan, "plan") or "samples, one after another"}, epoch '
        f'{whole(plan, "epoch")}</p><div class="bar"><i style="width:{percent_of(whole(plan, "batch"), whole(plan, "batches"))}%">'
        f'</i></div><small>{html.escape(place)}; waited {100 * number(plan, "wait_share"):.3g} % of the time, '
        f'{100 * number(plan, "staged_share"):.3g} % of the dataset staged</small></div>\n' for plan, place in zip(plans, places))
    return shown or '<p class="soft">None is read.</p>\n'


def page(status: Any, history: Any, places: list[str], now: int) -> str:
    """The page. status, history: JSON of the mount; places: where each plan is, in words; now: seconds since 1970."""
    plans = value(status, "plans")
    trouble = "".join(
        f'<p><span class="bad">{label}:</span> {text(status, path)}</p>\n' for path, label in (
            ("last_read_error", "The last read that failed"), ("remote.last_error", "The remote fails"),
            ("last_refused_name", "The last name that was refused")) if text(status, path))
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
            f'<title>epochfs {text(status, "mountpoint")}</title>\n<style>\n{STYLE}</style></head>\n<body><main>\n'
            f'<h1>{text(status, "source")}</h1>\n<p>mounted on {text(status, "mountpoint")} for '
            f'{seconds_of(max(now - whole(status, "started"), 0))}</p>\n<p class="soft">epochfs {text(status, "version")}, seen '
            f'{html.escape(time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(now)))}</p>\n'
            + _tiles(status) + trouble + "<h2>Plans</h2>\n" + _plans(plans if isinstance(plans, list) else [], places)
            + "<h2>The last hour</h2>\n" + _drawings(status, _moments(history)) + "</main></body></html>\n")


def main() -> int:
    """Write the page of the JSON on stdin: {"now": seconds, "places": texts, "status": and "history": of the mount}."""
    about = json.load(sys.stdin)
    sys.stdout.write(page(about["status"], about["history"], about["places"], about["now"]))
    return 0
