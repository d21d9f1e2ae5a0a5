# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # names of and for bench/lib.sh
# The bars of what the Hub, Kaggle and Mosaic's users have: Parquet, zip, packed JSON Lines, MDS.

PACKAGES=(fuse3 libzstd1 nginx-light python3 python3-numpy zstd)
BARS=(parquet_pictures parquet_numbers parquet_far zip packed mds transferred)

bar_parquet_pictures() { python_bars hub_bars.py parquet_pictures; }

bar_parquet_numbers() { python_bars hub_bars.py parquet_numbers; }

bar_parquet_far() { python_bars hub_bars.py parquet_far; }

bar_zip() { python_bars hub_bars.py zip; }

bar_packed() { python_bars hub_bars.py packed; }

bar_mds() { python_bars hub_bars.py mds; }

bar_transferred() { python_bars hub_bars.py transferred; }
