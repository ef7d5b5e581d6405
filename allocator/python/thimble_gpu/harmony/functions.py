"""The packs of a plan and their functions, made once for all devices and sizes of batches."""

from thimble_gpu.harmony import pack as packs


class Functions:
    """Finds them by kind and task."""

    def __init__(self, chain, plan, loss):
        self._chain = chain
        self._loss = loss
        self._known = {}
        # A Value leaves the device where it is made if any other pack wants it, then or later.
        self._wanted = {value for task in plan.forward + plan.backward
                        for value in chain.uses(task.first, task.last)} | set(chain.outputs)

    def of(self, kind, task):
        key = (kind, task.first, task.last)
        if key not in self._known:
            self._known[key] = self._make(kind, task)
        return self._known[key]

    def _make(self, kind, task):
        chain = self._chain
        made = [value for value in chain.values() if task.first <= value.maker <= task.last]
        if kind in ("forward", "infer"):
            pack = packs.Pack(chain, task.first, task.last,
                              [value for value in made if value in self._wanted])
            return pack, packs.forward_function(pack, training=kind == "forward")
        after = [v for v in made if any(user > task.last for user in v.users)]
        pack = packs.Pack(chain, task.first, task.last, after)
        if kind == "last":
            return pack, packs.loss_function(pack, self._loss)
        return pack, packs.backward_function(pack)
