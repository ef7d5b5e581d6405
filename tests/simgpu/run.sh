#!/usr/bin/env bash
# Runs a command on the simulated GPU. See README.md.
set -uo pipefail

usage() {
  cat >&2 <<'END'
usage: run [--gpus N] [--memory BYTES] [--clock GPU] [--log PATH] [--fault SPEC]
           [--allow-illegal] -- COMMAND…

  --gpus N         number of devices (default: 1)
  --memory BYTES   memory of each device (default: 80GiB)
  --clock GPU      work takes as long as on an a100, h100, v100, t4 or gtx1080ti
  --log PATH       log every driver call, one per line
  --fault SPEC     make calls fail: cuMemCreate@3 the third, cuMemMap/100 every hundredth
  --allow-illegal  show calls that break CUDA's rules, but keep the command's exit status

SIMGPU_CONF accepts more options, see tests/simgpu/README.md.
END
  exit 2
}

die() { printf 'simgpu: %s\n' "$*" >&2; exit 2; }

conf=${SIMGPU_CONF:-}
allow_illegal=
while (($#)); do
  case $1 in
    --gpus | --memory | --clock | --log | --fault)
      (($# >= 2)) || die "$1 needs a value"
      conf+=${conf:+,}${1#--}:$2
      shift 2
      ;;
    --allow-illegal) allow_illegal=1; shift ;;
    --) shift; break ;;
    -*) die "unknown option '$1'; valid are --gpus, --memory, --clock, --log, --fault, --allow-illegal" ;;
    *) break ;;
  esac
done
(($#)) || usage

# Started by itself, this file has its libraries in runfiles; as part of a test, beside it.
here=$0.runfiles/thimble/tests/simgpu
[[ -d $here ]] || here=$(dirname "$0")
here=$(cd "$here" && pwd)

# A framework would only say that it sees no GPU, and continue without one.
"$here/driver/check_options" "$conf" || exit 2

illegal=$(mktemp)
trap 'rm -f "$illegal"' EXIT
[[ $conf == *illegal:* ]] || conf+=${conf:+,}illegal:$illegal

# XLA compiles for real, with the ptxas and libdevice of NVIDIA's wheels beside TensorFlow.
python=${SIMGPU_PYTHON:-$(command -v python3)}
cuda=$("$python" -c 'import importlib.util as u
spec = u.find_spec("nvidia")
print(spec.submodule_search_locations[0] + "/cu13" if spec else "")')
flags=--xla_gpu_autotune_level=0  # there is nothing to measure
# A product is timed by its sizes, which a library is told and a compiled kernel is not.
[[ $conf == *clock:* && $conf != *clock:off* ]] && flags+=" --xla_gpu_enable_triton_gemm=false"
[[ -d $cuda ]] && flags+=" --xla_gpu_cuda_data_dir=$cuda"

export SIMGPU_CONF=$conf
export XLA_FLAGS="$flags${XLA_FLAGS:+ $XLA_FLAGS}"  # the later one wins: the user's
export NVTX_INJECTION64_PATH=$here/driver/libcuda.so.1  # allocators say where blocks are: nvtx:on
export LD_LIBRARY_PATH=$here/driver:$here/libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export PYTHONPATH=$here/site${PYTHONPATH:+:$PYTHONPATH}
export PATH=$(dirname "$python"):${cuda:+$cuda/bin:}$PATH

trap : INT  # the command gets it too; what it broke is still worth a report
"$@"
status=$?

if [[ -s $illegal ]]; then
  echo "simgpu: $(wc -l <"$illegal") illegal calls (process.thread, call, why):" >&2
  head --lines=50 "$illegal" >&2
  ((status == 0)) && [[ -z $allow_illegal ]] && status=1
fi
exit $status
