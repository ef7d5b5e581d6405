"""The packs of a plan and their functions, made once for all devices and batch sizes."""

from thimble_gpu.harmony import pack as packs
from thimble_gpu.harmony import saving


class Functions:
    """Packs and functions by kind and task."""

    def __init__(self, chain, plan, loss):
        self._chain = chain
        self._loss = loss
        self._known = {}
        # A Value leaves its device if any other pack uses it, now or later.
        self._wanted = {value for task in plan.forward + plan.backward
                        for value in chain.uses(task.first, task.last)}
        self._wanted.update(chain.outputs + chain.logits)

    def of(self, kind, task):
        """The pack and the function. Kinds: forward, last, backward; infer (without training); save
        and restore (forward and backward of tasks whose activations are saved)."""
        key = (kind, task.first, task.last)
        if key not in self._known and kind in ("save", "restore"):
            pack = packs.Pack(self._chain, task.first, task.last, self._handed_on(task))
            for name, function in zip(("save", "restore"), saving.functions(pack)):
                self._known[name, task.first, task.last] = pack, function
        if key not in self._known:
            self._known[key] = self._make(kind, task)
        return self._known[key]

    def _handed_on(self, task):
        return [value for value in self._chain.values() if task.first <= value.maker <= task.last
                and any(user > task.last for user in value.users)]

    def _make(self, kind, task):
        chain = self._chain
        if kind in ("forward", "infer"):
            pack = packs.Pack(chain, task.first, task.last,
                              [value for value in chain.values() if value in self._wanted
                               and task.first <= value.maker <= task.last])
            return pack, packs.forward_function(pack, training=kind == "forward")
        pack = packs.Pack(chain, task.first, task.last, self._handed_on(task))
        if kind == "last":
            return pack, packs.loss_function(pack, self._loss)
        return pack, packs.backward_function(pack)
