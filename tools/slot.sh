#!/usr/bin/env bash
# All that is worth knowing of the kernels on a GPU, in ten minutes: what matters most comes first, and the folder holds
# the results of every step that ended. The same command goes on where an earlier one ran out of time.
#
#     tools/slot.sh FOLDER [MINUTES]
#
# PYTHON names the interpreter, BENCH, HOST and PYTEST the commands, for a machine that has them elsewhere; on a slow one
# PATIENCE multiplies what a step may take.
set -u
cd "$(dirname "$0")/.."
mkdir -p "${1:?needs a folder for the results}"
folder=$(cd "$1" && pwd)
end=$((SECONDS + 60 * ${2:-10}))
python=${PYTHON:-python}
bench=${BENCH:-$python -m normgrad.bench}
host=${HOST:-$python tools/host_times.py}
pytest=${PYTEST:-$python -m pytest}
: > "$folder/summary.txt"

say() {
    echo "$*" | tee -a "$folder/summary.txt"
}

# step NAME SECONDS COMMAND...: at most so many seconds, and none that are not left
step() {
    local name=$1 most=$(($2 * ${PATIENCE:-1})) left=$((end - SECONDS)) started=$SECONDS status
    shift 2
    if ((left < 5)); then
        say "$name: not begun, the time is over"
        return
    fi
    timeout $((left < most ? left : most)) "$@" > "$folder/$name.txt" 2>&1
    status=$?
    case $status in
        0) say "$name: done in $((SECONDS - started)) s" ;;
        124) say "$name: out of time after $((SECONDS - started)) s; $name.txt holds what there was" ;;
        *) say "$name: ended with status $status; see $name.txt" ;;
    esac
}

minutes_left() {
    echo $(((end - SECONDS - 30) / 60))
}

clocks=
if command -v nvidia-smi > /dev/null; then
    nvidia-smi > "$folder/device.txt"
    fields=timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu,clocks_throttle_reasons.active
    nvidia-smi --query-gpu=$fields --format=csv --loop=1 > "$folder/clocks.csv" &
    clocks=$!
    trap 'kill $clocks' EXIT
fi

# The shapes of the promises, beside a copy, torch, torch.compile and Liger.
step quick 240 $bench gpu --quick --minutes 2 --json "$folder/gpu.json"
step judge-quick 60 $bench judge "$folder/gpu.json"
# The contract on compiled kernels.
step tests 120 $pytest -q -m gpu tests/test_gpu.py
step host 120 $host --rounds 51 --json "$folder/host.json"
# All other shapes, as many as there is time for.
if (($(minutes_left) > 0)); then
    step all 3600 $bench gpu --minutes "$(minutes_left)" --json "$folder/gpu.json"
fi
step judge 60 $bench judge "$folder/gpu.json"
step plot 120 $bench plot "$folder/gpu.json" --out "$folder"
say "measured: gpu.json, to be copied to src/normgrad/bench/results/<device>_<date>.json, and host.json"
say "not measured: other GPUs, several GPUs at once"
