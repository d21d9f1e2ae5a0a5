# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # names of and for bench/lib.sh
# The bars of reading by plan; bench/plan_bars.py and mix_bars.py have the measurements.

PACKAGES=(nginx-light curl fuse3 python3 python3-numpy)
BARS=(first_batch pushed keep many orders mix_orders mix draw balanced)

bar_first_batch() { python_bars plan_bars.py first_batch; }
bar_pushed() { python_bars plan_bars.py pushed; }
bar_keep() { python_bars plan_bars.py keep; }
bar_many() { python_bars plan_bars.py many; }
bar_orders() { python_bars plan_bars.py orders; }
bar_mix_orders() { python_bars plan_bars.py mix_orders; }
bar_mix() { python_bars mix_bars.py mix; }
bar_draw() { python_bars mix_bars.py draw; }
bar_balanced() { python_bars plan_bars.py balanced; }
