"""thimble_gpu in programs of stock TensorFlow and stock JAX: true figures, working controls."""

import json
import pathlib
import re
import textwrap
import unittest

from tests.wheel import installation

HEADER = pathlib.Path("allocator/thimble.h")
SIMULATOR = ("--memory", "2GiB")
PJRT = {"num_allocs", "bytes_in_use", "peak_bytes_in_use", "largest_alloc_size", "bytes_limit",
        "bytes_reserved", "peak_bytes_reserved", "bytes_reservable_limit",
        "largest_free_block_bytes", "pool_bytes", "peak_pool_bytes", "peak_allocated_bytes"}
OWN = {"bytes_magazines", "bytes_free_small", "bytes_free_large", "bytes_spare", "bytes_swapped",
       "bytes_vacant"}

# The same for every framework: `hold(mebibytes)` gives something that holds memory of `DEVICE`.
CASES = """
    import json, os, tempfile, threading
    import thimble_gpu

    MIB = 1 << 20
    def refused(kind, function, *arguments, **options):
        try:
            function(*arguments, **options)
        except kind as error:
            return str(error)
        raise AssertionError(f"{arguments} {options} was accepted")

    kept = hold(8)
    before = thimble_gpu.memory_stats(DEVICE)
    gone = hold(16)
    del gone
    after = thimble_gpu.memory_stats(DEVICE)
    assert after["bytes_in_use"] == before["bytes_in_use"] >= 8 * MIB, (before, after)
    assert after["peak_bytes_in_use"] >= 24 * MIB
    assert after["largest_alloc_size"] >= 16 * MIB
    assert after["bytes_limit"] == after["bytes_reservable_limit"]
    assert after["num_allocs"] > before["num_allocs"]
    own = thimble_gpu.stats(DEVICE, FRAMEWORK)
    assert own["in_use"] == after["bytes_in_use"] and own["reserved"] == after["bytes_reserved"]
    assert own["reserved"] == sum(own[part] for part in (
        "in_use", "magazines", "free_small", "free_large", "spare"))
    assert thimble_gpu.snapshot(DEVICE)["stats"]["in_use"] == own["in_use"]

    assert after["bytes_reserved"] == sum(after["bytes_" + part] for part in (
        "in_use", "magazines", "free_small", "free_large", "spare"))

    with thimble_gpu.peak(DEVICE) as outer:
        hold(12)
        with thimble_gpu.peak(DEVICE, FRAMEWORK) as inner:
            hold(4)
            assert 12 * MIB <= inner.bytes < outer.bytes, (inner.bytes, outer.bytes)
            thread = threading.Thread(target=lambda: [hold(1) for _ in range(5)])
            with thimble_gpu.peak(DEVICE):
                thread.start()
                thread.join()
        assert inner.bytes < outer.bytes and 20 * MIB <= outer.bytes, (inner.bytes, outer.bytes)
        assert outer.reserved >= outer.bytes
        assert "measured" in refused(RuntimeError, outer.__enter__)
    assert thimble_gpu.memory_stats(DEVICE)["peak_bytes_in_use"] == after["peak_bytes_in_use"]
    assert "no peak was measured" in refused(RuntimeError, lambda: thimble_gpu.peak(DEVICE).bytes)

    thimble_gpu.reset_peak(DEVICE)
    assert thimble_gpu.memory_stats(DEVICE)["peak_bytes_in_use"] < 24 * MIB
    released = thimble_gpu.trim(device=DEVICE)
    assert released >= 16 * MIB
    assert thimble_gpu.stats(DEVICE)["reserved"] == own["reserved"] - released

    limit = int(thimble_gpu.settings(DEVICE)["limit"])
    assert limit == after["bytes_limit"]
    thimble_gpu.set("limit", 64 * MIB, DEVICE)
    assert thimble_gpu.settings(DEVICE)["limit"] == str(64 * MIB)
    assert thimble_gpu.memory_stats(DEVICE)["bytes_limit"] == 64 * MIB
    assert "in use" in refused(thimble_gpu.ThimbleError, thimble_gpu.set, "limit", 4 * MIB, DEVICE)
    more = 2 * limit
    assert "made for" in refused(thimble_gpu.ThimbleError, thimble_gpu.set, "limit", more, DEVICE)
    thimble_gpu.set("limit", limit, DEVICE)
    assert "only 'limit' can" in refused(ValueError, thimble_gpu.set, "chunk", "4MiB", DEVICE)
    assert "'much'" in refused(ValueError, thimble_gpu.set, "limit", "much", DEVICE)
    assert "-1" in refused(ValueError, thimble_gpu.trim, -1, DEVICE)
    assert "'torch'" in refused(ValueError, thimble_gpu.stats, DEVICE, "torch")
    assert "'gpu'" in refused(ValueError, thimble_gpu.stats, "gpu")
    assert "yet" in refused(thimble_gpu.NotActive, thimble_gpu.stats, 7) or DEVICE == "cpu"

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "log")
        thimble_gpu.log(path, DEVICE)
        assert "already" in refused(thimble_gpu.ThimbleError, thimble_gpu.log, path, DEVICE)
        hold(1)
        thimble_gpu.stop_log(DEVICE)
        assert os.path.getsize(path) >= 16 + 2 * 48
    print(json.dumps(after))
"""
TENSORFLOW = """
    import tensorflow as tf
    def hold(mebibytes):
        return tf.zeros([mebibytes, 256, 1024]) + 1
"""
JAX = """
    import jax.numpy as jnp
    def hold(mebibytes):
        return jnp.ones((mebibytes, 256, 1024)).block_until_ready()
    hold(1)
"""


# Stock Keras, and what TensorBoard would read.
CALLBACK = """
    import glob, os, tempfile
    import keras, numpy as np, tensorflow as tf
    import thimble_gpu
    from thimble_gpu.keras import MemoryCallback

    model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(2048), keras.layers.Dense(1)])
    model.compile("adam", "mse", jit_compile=False)
    with tempfile.TemporaryDirectory() as folder:
        with thimble_gpu.peak("cpu") as whole:
            history = model.fit(np.ones((1024, 64)), np.ones((1024, 1)), batch_size=1024, epochs=3,
                                verbose=0, callbacks=[MemoryCallback(log_dir=folder)]).history
        file, = glob.glob(os.path.join(folder, "*"))
        written = {}
        for event in tf.compat.v1.train.summary_iterator(file):
            for value in event.summary.value:
                number = float(tf.make_ndarray(value.tensor))
                written.setdefault(value.tag, []).append((event.step, number))
    now = thimble_gpu.stats("cpu")
    for name in ("peak", "in_use", "reserved", "swapped"):
        figures = history["memory_" + name]
        assert len(figures) == 3, history
        assert written["memory/" + name] == list(enumerate(map(np.float32, figures))), written
    assert all(8 << 20 < peak <= whole.bytes for peak in history["memory_peak"]), history
    assert max(history["memory_peak"]) > max(history["memory_in_use"])
    assert history["memory_reserved"][-1] == now["reserved"] and not any(history["memory_swapped"])
"""


class Stats(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.site = installation.Environment(cls.addClassCleanup).install()

    def check(self, framework, device, hold, **options):
        names = f"FRAMEWORK, DEVICE = {framework!r}, {device!r}\n"
        ended = self.site.python(names + textwrap.dedent(hold + CASES), **options)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        told = json.loads(ended.stdout.splitlines()[-1])
        self.assertEqual(set(told), PJRT | OWN)

    def test_tensorflow_on_the_cpu(self):
        self.check("tensorflow", "cpu", TENSORFLOW, THIMBLE_CONF="device:cpu,limit:1GiB")

    def test_tensorflow_on_a_gpu(self):
        self.check("tensorflow", 0, TENSORFLOW, simulator=SIMULATOR, TF_GPU_ALLOCATOR="thimble",
                   TF_FORCE_GPU_ALLOW_GROWTH="true")

    def test_jax_on_a_gpu(self):
        self.check("jax", 0, JAX, simulator=SIMULATOR, XLA_PYTHON_CLIENT_ALLOCATOR="thimble")

    def test_keras_gets_figures_of_every_epoch(self):
        ended = self.site.python(CALLBACK, THIMBLE_CONF="device:cpu,limit:1GiB")
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_without_thimble_the_error_says_how_to_turn_it_on(self):
        ended = self.site.python("""
            import thimble_gpu
            try:
                thimble_gpu.memory_stats()
            except thimble_gpu.NotActive as error:
                print(error)
            with open("/proc/self/maps") as maps:
                names = {line.split("/")[-1] for line in maps}
            assert not any("thimble" in name for name in names), "nothing is loaded by asking"
        """)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        for part in ("TF_GPU_ALLOCATOR=thimble", "XLA_PYTHON_CLIENT_ALLOCATOR=thimble",
                     "thimble run", "thimble doctor"):
            self.assertIn(part, ended.stdout)

    def test_the_structs_are_those_of_the_header(self):
        text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
        body = re.search(r"typedef struct thimble_peaks \{(.*?)\}", text, re.DOTALL).group(1)
        fields = re.findall(r"(\w+) (\w+);", body)
        self.assertEqual(fields.pop(0), ("size_t", "struct_size"))
        self.assertEqual({kind for kind, _ in fields}, {"uint64_t"})
        told = self.site.python("from thimble_gpu import abi; print(*abi.PEAKS)").stdout
        self.assertEqual(told.split(), [name for _, name in fields])


if __name__ == "__main__":
    unittest.main()
