"""Plans as text: what a resumed job has to know of a plan. docs/reference/plans.md lists their words, docs/spec/order.md defines them."""

from __future__ import annotations

import operator

from .errors import PlanError

EPOCH_MAX = (1 << 64) - 1


def words(plan: str) -> dict[str, str]:
    """The parameters of "batch=128,seed=7" by their names. Raises PlanError if it cannot be the name of a directory,
    and TypeError if it is no text. Only the mount knows what a plan means."""
    if not isinstance(plan, str):
        raise TypeError(f"plan: expected text as 'batch=128,seed=7', got {plan!r}")
    if "/" in plan or "\0" in plan or not plan.startswith("batch=") and ",batch=" not in plan:
        raise PlanError(None, f"expected batch=N and further words joined by commas, got {plan!r}")
    return {name: value for name, _, value in (word.partition("=") for word in plan.split(","))}


def number(name: str, value: int, end: int) -> int:
    """value, a number of Python, numpy or torch, as an int. Raises TypeError, or ValueError if it is not in 0 to end."""
    try:
        found = int(operator.index(value))
    except TypeError as e:
        raise TypeError(f"{name}: expected a whole number, got {value!r}") from e
    if not 0 <= found <= end:
        raise ValueError(f"{name}: expected a number from 0 to {end}, got {found}")
    return found


def folder(plan: str, epoch: int) -> str:
    """The directory of its encodings, below batches/. Without a seed all epochs are equal, and no directory names one."""
    epoch = number("epoch", epoch, EPOCH_MAX)
    return f"{plan}/epoch={epoch}" if "seed" in words(plan) else plan


def is_by_length(plan: str) -> bool:
    """Do its batches have different numbers of samples, and its epochs different numbers of batches?"""
    found = words(plan)
    return "bucket" in found or ":" in found["batch"]


def step_size(plan: str) -> int | None:
    """Samples that all ranks together take in a step, or batches of a plan by length; None for batch=all."""
    found = words(plan)
    if is_by_length(plan):
        found["batch"] = "1"
    if found["batch"] == "all":
        return None
    try:
        return int(found["batch"]) * int(found.get("rank", "0of1").partition("of")[2])
    except ValueError as e:
        raise PlanError(None, f"expected batch=N and rank=KofN with numbers, got {plan!r}") from e


def samples_of(plan: str) -> str:
    """The words that select and order the samples, without those that divide them among ranks and batches or change their pictures."""
    found = words(plan)
    kept, defaults = ["batch"] if is_by_length(plan) else [], [("shuffle", "full"), ("group", "1")]
    if ":" in found["batch"]:
        defaults += [("bucket", "8192")]
    elif found.get("tail") == "drop" and "bucket" in found:  # the last window has a batch less, and so another order
        kept += ["tail"]
    return ",".join(f"{name}={value}" for name, value in sorted(found.items())
                    if name in kept or name not in ("batch", "rank", "tail", "picture", "image_size", "augment") and (name, value) not in defaults)
