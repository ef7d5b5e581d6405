"""Profiles a model, plans with the profile, and shows the plan. usage: profile_case.py CSV"""

import json
import sys

from thimble_gpu import harmony

DEVICES = harmony.cpu_devices(2)

from tests.harmony_runner import models  # pylint: disable=wrong-import-position


def main():
    model = models.transformer()
    model.compile(models.optimizer("adam"), models.loss())
    before = [variable.numpy().tobytes() for variable in model.variables]
    x, y = models.batch_of("transformer")
    harmony.profile(model, x, y, sys.argv[1], device="CPU:1", sizes=(1, 4))
    dry = harmony.plan(model, x, y, devices=DEVICES, memory="10MiB", mode="pp")
    after = [variable.numpy().tobytes() for variable in model.variables]
    print(json.dumps({"explanation": dry.explain(), "unchanged": before == after,
                      "weights": sum(4 * v.numpy().size for v in model.trainable_variables)}))


main()
