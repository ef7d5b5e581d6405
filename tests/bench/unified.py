"""Runs a program of tests/workloads in unified memory, which may be larger than the GPU.

    ./dev sim --memory 4GiB -- python tests/bench/unified.py vgg16.py --batch 32
"""

import os
import runpy
import sys

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "workloads")
FRACTION = 16.0  # of the GPU's memory
JAX = {"TF_FORCE_UNIFIED_MEMORY": "1", "XLA_PYTHON_CLIENT_MEM_FRACTION": str(FRACTION)}


def prepare_tensorflow():
    import tensorflow as tf
    from tensorflow.python.eager import context
    config = tf.compat.v1.ConfigProto()
    config.gpu_options.per_process_gpu_memory_fraction = FRACTION
    context.context()._config = config  # TensorFlow 2 has no public place for it


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    sys.path.insert(0, FOLDER)
    sys.argv = sys.argv[1:]
    if sys.argv[0].startswith("jax_"):
        os.environ.update(JAX)
    else:
        prepare_tensorflow()
    runpy.run_path(os.path.join(FOLDER, sys.argv[0]), run_name="__main__")


if __name__ == "__main__":
    main()
