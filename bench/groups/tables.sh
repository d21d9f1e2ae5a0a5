# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # names of and for bench/lib.sh
# The bars of CSV: its index against wc -l, an epoch against XGBoost's own parser.

PACKAGES=(fuse3 python3 python3-numpy python3-xgboost)
BARS=(csv)

bar_csv() { python_bars tables_bars.py csv; }
