#!/usr/bin/python3
# needs: python3-torchvision python3-pil
"""docs/images.md, done as a reader would. Another training is killed in its second epoch, resumes with one process instead of two,
and has the same weights to the last bit."""

import tutorials

KILL = """mkfifo fifo
start() {
    pids=
    for ((k = 0; k < $1; k++)); do
        RANK=$k WORLD_SIZE=$1 python3 train.py broken > "$2" & pids+=" $!"
        set -- "$1" /dev/null
    done
}
start 2 fifo
while read -r step; do [ "$step" != '1 5' ] || kill -9 $pids; done < fifo
for pid in $pids; do ! wait $pid; done
start 1 steps
wait $pids
test "$(head -n 1 steps)" = '1 4'
python3 -c "
import torch
whole, broken = torch.load('run/model.pt'), torch.load('broken/model.pt')
assert all(torch.equal(whole[name], broken[name]) for name in whole)
"
"""

tutorials.run_page("docs/images.md", "Train a ResNet-18 on augmented images", then={"RANK=": KILL})
