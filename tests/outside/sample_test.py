"""A sample of `./dev outside` with the programs that find most. See README.md."""

import dataclasses
import pathlib
import sys
import tempfile
import unittest

from tests.outside import jax_suite
from tests.outside import keras_suite
from tests.outside import model_suite
from tests.outside import modes
from tests.outside import page
from tests.outside import session
from tests.outside import units
from tests.wheel import installation

JOBS = 2

LAYERS = "layers/rnn/lstm_test.py"  # state and while loops
FORKS = 2  # times that models are loaded by forks; and a data set with forked workers
FORK_SECONDS = 120  # of silence: what hangs must not take all the time there is
# Depthwise convolutions by oneDNN; attention, with weights that are idle most of a step.
MODELS = {
    "MobileNet": (modes.PLAIN, "plan", "bfc"),
    "GPT2Backbone": (modes.PLAIN, modes.SWAP, modes.GPU),
}
PROGRAMS = ("transformer_scan",)


class Sample(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        environment = installation.Environment(self.addCleanup).install()
        python = str(environment.folder / "bin" / "python")
        self.runner = units.Runner(units.Machine(
            sys.executable, python, installation.LAUNCHER, pathlib.Path(folder.name), "this wheel"))

    def test_stock_and_thimble_agree(self):
        layers = keras_suite.unit("layers", [str(keras_suite.root() / LAYERS)])
        plan = [(layers, (modes.PLAIN, modes.SWAP))]
        plan += [(dataclasses.replace(unit, seconds=FORK_SECONDS), (modes.PLAIN,))
                 for unit in keras_suite.forks(FORKS)]
        plan += [(model_suite.unit(name), chosen) for name, chosen in MODELS.items()]
        plan += [(jax_suite.unit(name), (modes.PLAIN,)) for name in PROGRAMS]
        verdicts, stale = session.run(self.runner, plan, JOBS, tries=1)
        result = page.Page(verdicts, stale, 0)
        print(result.summary())
        self.assertTrue(result.is_well, result.text())
        for name in ("test_load_model_concurrently", "PyDataset", "LSTMTest"):
            self.assertTrue(any(name in verdict.test for verdict in verdicts), f"no {name}")


if __name__ == "__main__":
    unittest.main()
