#!/usr/bin/env bash
# All that is worth knowing of the kernels on a GPU, what matters most first; the folder holds what each step found.
#
#     tools/slot.sh FOLDER [OPTIONS of tools/gpu_times.py, as --stand-in]
set -u
cd "$(dirname "$0")/.."
mkdir -p "${1:?needs a folder for the results}"
folder=$(cd "$1" && pwd)
shift
python=${PYTHON:-python}

# step NAME SECONDS COMMAND...
step() {
    local name=$1 most=$2
    shift 2
    timeout "$most" "$@" > "$folder/$name.txt" 2>&1
    echo "$name: ended with status $?; see $name.txt"
}

command -v nvidia-smi > /dev/null && nvidia-smi > "$folder/device.txt"
step tests 200 "$python" -m pytest -q -p no:benchmark -n 8 -m gpu tests/test_gpu.py
step times 240 "$python" tools/gpu_times.py --json "$folder/gpu.json" "$@"
# The notebooks of the site, where it is built, with Triton that compiles.
step notebooks 240 "$python" tools/gpu_notebooks.py --json "$folder/notebooks.json"
# It goes on where the first step ran out of time.
step rest 600 "$python" tools/gpu_times.py --json "$folder/gpu.json" --dtypes bfloat16 float16 float32 "$@"
