# shellcheck shell=bash disable=SC2034
# A job that trains: does work done ahead take processor time from it? (bench/busy_bars.py)
PACKAGES=(python3-torch python3-numpy dataset-fashion-mnist nginx-light)
BARS=(all one remote_all remote_one)

bar_all() { python_bars busy_bars.py all; }
bar_one() { python_bars busy_bars.py one; }
bar_remote_all() { python_bars busy_bars.py remote_all; }
bar_remote_one() { python_bars busy_bars.py remote_one; }
