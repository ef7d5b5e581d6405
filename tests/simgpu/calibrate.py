"""Compares the simulated clock with published measurements of the same GPUs.

    calibrate.py --simulator RUN [--only PROGRAM[@GPU]]

Each program of tests/workloads is run twice, with different numbers of steps: the difference of the
device's busy time is that of the steps between. Every ratio should lie within a factor of 1.5.
"""

import argparse
import os
import re
import subprocess
import sys
import typing

FACTOR = 1.5
STEPS = (1, 2)  # the first step also makes variables

# Which measurement, and who made it.
NVIDIA = "NVIDIA, DeepLearningExamples, ResNet50 v1.5 for TensorFlow 20.06, one GPU, with XLA"
LAMBDA = "Lambda, RTX 2080 Ti Deep Learning Benchmarks with TensorFlow 1.12"
U39KUN = "u39kun, deep-learning-benchmark, TensorFlow 1.4 (1080 Ti) and 1.5 (V100)"
KARPATHY = "Karpathy, Let's reproduce GPT-2 (124M), section on TF32, PyTorch without compilation"


class Measurement(typing.NamedTuple):
    program: str
    arguments: list
    gpu: str
    milliseconds: float  # per step, as published
    source: str


def images(batch, per_second):
    return 1e3 * batch / per_second


RESNET = ["--batch=64"]
VGG = ["--batch=16"]
GPT2 = ["--batch=4", "--tokens=1024", "--vocabulary=50257"]
MEASUREMENTS = [
    Measurement("resnet50", RESNET, "a100", images(64, 808), NVIDIA + ", TF32"),
    Measurement("resnet50", RESNET, "v100", images(64, 412), NVIDIA + ", FP32"),
    Measurement("resnet50", RESNET, "gtx1080ti", images(64, 209), LAMBDA),
    Measurement("vgg16", VGG, "v100", 71.7, U39KUN),
    Measurement("vgg16", VGG, "gtx1080ti", 131.3, U39KUN),
    Measurement("gpt2", GPT2, "a100", 333 * 4 / 16, KARPATHY + ", 16 sentences in 333 ms"),
]


def busy_seconds(simulator, measurement, steps):
    """Of the simulated GPU's kernels, in a run of so many steps."""
    command = [simulator, "--clock", measurement.gpu, "--", sys.executable,
               f"tests/workloads/{measurement.program}.py", f"--steps={steps}"]
    environment = dict(os.environ, SIMGPU_CONF="summary:on", SIMGPU_PYTHON=sys.executable,
                       TF_CPP_MIN_LOG_LEVEL="2")
    done = subprocess.run(command + measurement.arguments, env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    found = re.search(r"compute ([0-9.]+) s", done.stderr)
    if done.returncode or not found:
        sys.exit(f"calibrate.py: {' '.join(command)} failed:\n{done.stderr}")
    return float(found.group(1))


def main(options):
    print("| program | GPU | published | simulated | ratio | source |\n|---|---|---|---|---|---|")
    wrong = []
    for one in MEASUREMENTS:
        if options.only not in ("", one.program, f"{one.program}@{one.gpu}"):
            continue
        few, many = (busy_seconds(options.simulator, one, steps) for steps in STEPS)
        simulated = 1e3 * (many - few) / (STEPS[1] - STEPS[0])
        ratio = simulated / one.milliseconds
        print(f"| {one.program} {' '.join(one.arguments)} | {one.gpu} | {one.milliseconds:.0f} ms "
              f"| {simulated:.0f} ms | {ratio:.2f} | {one.source} |", flush=True)
        if not 1 / FACTOR <= ratio <= FACTOR:
            wrong.append(f"{one.program} on {one.gpu}: {ratio:.2f}")
    if wrong:
        sys.exit(f"calibrate.py: outside a factor of {FACTOR}: {'; '.join(wrong)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulator", required=True, help="tests/simgpu/run, as it was built")
    parser.add_argument("--only", default="", metavar="PROGRAM[@GPU]")
    main(parser.parse_args())
