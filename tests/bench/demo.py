"""Trains one Keras model twice in the same memory: on TensorFlow's allocator, and on Thimble.

Real training with real numbers, on the CPU device with a limit. The host stands in for a GPU that is
sixteen times as large, so memory comes in chunks of 128 KiB instead of 2 MiB.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "demo_train.py")
MEMORY = "device:cpu,limit:264MiB,chunk:128KiB,retry_ms:100"
CASES = {
    "TensorFlow's own allocator (BFC)": f"{MEMORY},front:bfc",
    "Thimble": MEMORY,
}
REPORT = "report.html"
# Runs kernels one after the other, so that every run requests the same memory.
ENVIRONMENT = {"TF_NUM_INTEROP_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "1"}


def train(name, conf):
    """Shows every tenth step and the last loss. Returns whether the program reached its end."""
    print(f"\n== {name}\n   THIMBLE_CONF={conf}", flush=True)
    environment = {**os.environ, **ENVIRONMENT, "THIMBLE_CONF": conf}
    environment.pop("TF_GPU_ALLOCATOR", None)
    process = subprocess.Popen([sys.executable, PROGRAM], env=environment, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    step = {"step": 0, "loss": float("nan")}
    for line in process.stdout:
        step = json.loads(line)
        if step["step"] % 10 == 0:
            print(f"   step {step['step']:3}  loss {step['loss']:.4f}", flush=True)
    errors = process.stderr.read()
    status = process.wait()
    if status == 0:
        print(f"   trained: {step['step']} steps, loss {step['loss']:.4f}")
    elif status == 3:
        wanted = re.search(r"OOM when allocating tensor with shape\[[0-9,]*\]", errors)
        print(f"   OUT OF MEMORY after {step['step']} steps"
              f"{': ' + wanted.group(0) if wanted else ''}")
    else:
        sys.exit(f"{errors}\nThe program failed with status {status}, see above.")
    return status == 0


def draw(log):
    """Writes a page that shows where memory went into the current folder."""
    command = [sys.executable, "-m", "thimble_gpu.cli", "report", log, "-o", REPORT]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    print(f"{REPORT} shows where the memory went: open it in a browser.")


def main():
    print("A small language model that remembers what it has read, in 264 MiB.")
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "thimble.log")
        logs = {"Thimble": f",log:{log}"}
        done = {name: train(name, conf + logs.get(name, "")) for name, conf in CASES.items()}
        draw(log)
    print()
    for name, trained in done.items():
        print(f"{name:34} {'trains' if trained else 'runs out of memory'}")
    if list(done.values()) != [False, True]:
        sys.exit("The demonstration did not show what it should. Please report this.")


if __name__ == "__main__":
    main()
