"""A forward that saves what backward needs, and a backward that does not compute forward again.

Both are cut out of one graph that computes forward and backward. The ops that exist before
gradients are requested belong to forward. Tensors that cross the cut are saved. Ops that take no
memory, such as Reshape, are computed again instead.
"""

import tensorflow as tf
from keras.src.backend import get_keras_mask  # how Keras hands masks on: beside the tensors

from thimble_gpu.harmony import pack as packs

_AGAIN = frozenset(("Const", "ExpandDims", "Identity", "Reshape", "Squeeze"))
_ENDS = frozenset(("AssignAddVariableOp", "ResourceScatterAdd"))  # ops without a result


class CannotSave(Exception):
    """Requesting gradients has changed forward itself, as happens with loops."""

    def __init__(self, pack):
        super().__init__(f"the activations of {pack.name} cannot be saved")
        self.stages = set(range(pack.first, pack.last + 1))


def functions(pack):
    """Forward and backward.

    (weights, frozen, state, uses, masks) -> values, their masks, state, saved
    (weights, frozen, state, uses, masks, saved, gradients of makes, scale, sums) -> gradients, loss
    """
    cuts = {}

    def cut(*arguments):
        key = str(tf.nest.map_structure(_spec, arguments))
        if key not in cuts:
            cuts[key] = _Cut(pack, tf.nest.map_structure(_spec, arguments))
        return cuts[key]

    def forward(*arguments):
        return cut(*arguments).forward(arguments)

    def backward(weights, frozen, state, uses, masks, saved, gradients, scale, sums):
        known = weights, frozen, state, uses, masks
        return cut(*known).backward(known, saved, gradients, scale, sums)

    return packs.Function(forward, pack), packs.Function(backward, pack)


def _spec(tensor):
    return None if tensor is None else tf.TensorSpec(tensor.shape, tensor.dtype)


class _Cut:
    """The graph of a pack for arguments of some shapes, and where it is cut."""

    def __init__(self, pack, arguments):
        both = self._trace(pack, arguments).as_graph_def()
        self._library = both.library, both.versions
        self._nodes = {node.name: node for node in both.node}
        ends = [f"{node.name}:0" for node in both.node if node.op in _ENDS]
        self._saved = []
        needed = self._walk(_listed(self._fetches["backward"]) + ends, self._is_saved)
        self._after = [node for node in both.node if node.name in needed]
        needed = self._walk(_listed(self._fetches["forward"]) + self._saved, lambda name: False)
        if not needed <= self._first:
            raise CannotSave(pack)
        self._before = [node for node in both.node if node.name in needed]
        self._ends = ends

    def _trace(self, pack, arguments):
        def both(*arguments):
            weights, frozen, state, uses, masks, gradients, scale, sums = arguments
            self._arguments = _names(arguments)
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                packs.watch(tape, pack, weights, uses)
                known, after, extra = pack.compute(weights, frozen, state, uses, masks, True)
                made = [known[value] for value in pack.makes]
                graph = tf.compat.v1.get_default_graph()
                self._first = {op.name for op in graph.get_operations()}
                share = extra * scale
            pairs = [(tensor, gradient) for tensor, gradient in zip(made, gradients)
                     if gradient is not None] + [(share, tf.ones_like(share))]
            found = packs.add_gradients(tape, pack, *zip(*pairs), weights, uses, sums)
            # Read after requesting gradients: loops have then changed these tensors.
            self._fetches = {"forward": _names({
                "values": made, "masks": [get_keras_mask(tensor) for tensor in made],
                "state": after}), "backward": _names({"gradients": found, "loss": extra})}

        outputs = packs.forward_function(pack, training=True).outputs_for(*arguments)["values"]
        self._gradients = [_spec(value) if value.dtype.is_floating else None for value in outputs]
        sums = [tf.TensorSpec([], tf.resource) for _ in arguments[0]]
        return tf.function(both, autograph=False).get_concrete_function(
            *arguments, self._gradients, tf.TensorSpec([], tf.float32), sums).graph

    def _walk(self, tensors, stops_at):
        """Names of all ops that these tensors need, up to arguments and where `stops_at` is
        true."""
        needed, left = set(), list(tensors)
        while left:
            name = left.pop()
            node = self._nodes[name.partition(":")[0]]
            if node.name in needed or node.op == "Placeholder" or stops_at(name):
                continue
            needed.add(node.name)
            left += [_full(each) for each in node.input if not each.startswith("^")]
        return needed

    def _is_saved(self, name):
        op = name.partition(":")[0]
        if op not in self._first or self._nodes[op].op in _AGAIN:
            return False
        if name not in self._saved:
            self._saved.append(name)
        return True

    def forward(self, arguments):
        known = dict(zip(_listed(self._arguments), _listed(arguments)))
        fetches = {**self._fetches["forward"], "saved": self._saved}
        return self._compute(self._before, known, fetches)

    def backward(self, arguments, saved, gradients, scale, sums):
        # A missing gradient is zero.
        gradients = [tf.zeros(spec.shape, spec.dtype) if tensor is None and spec else tensor
                     for tensor, spec in zip(gradients, self._gradients)]
        given = [*arguments, gradients, scale, sums]
        known = dict(zip(_listed(self._arguments), _listed(given)))
        known.update(zip(self._saved, saved))
        return self._compute(self._after, known, self._fetches["backward"], self._ends)

    def _compute(self, nodes, known, fetches, ends=()):
        """Copies ops into the current graph; `known` are tensors by name."""
        graph = tf.compat.v1.GraphDef(library=self._library[0], versions=self._library[1])
        used = set()
        for node in nodes:
            copy = graph.node.add()
            copy.CopyFrom(node)
            copy.attr.pop("_class", None)  # names ops beyond the cut
            del copy.input[:]
            copy.input.extend(each for each in node.input if not each.startswith("^"))
            used.update(map(_full, copy.input))
        wanted = [name for name in _listed(fetches) if name not in known]
        results = tf.graph_util.import_graph_def(
            graph, {name: tensor for name, tensor in known.items() if name in used},
            wanted + [end.partition(":")[0] for end in ends], name="cut")
        known = {**known, **dict(zip(wanted, results))}
        return tf.nest.map_structure(lambda name: None if name is None else known[name], fetches)


def _names(tensors):
    return tf.nest.map_structure(lambda tensor: None if tensor is None else tensor.name, tensors)


def _listed(structure):
    return [each for each in tf.nest.flatten(structure) if each is not None]


def _full(name):
    return name if ":" in name else f"{name}:0"
