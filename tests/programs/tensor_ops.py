"""Expressions over tensors of one shape, float32[rows, cols], that keep this shape.

{a} and {b} are tensors, {v} is a variable of that shape, {n} a small number, {s} a seed. They are
interchangeable, so a program may lose any of them and still run.
"""

# Everywhere: eager, in graphs, compiled by XLA.
PLAIN = (
    "tf.sin({a})",
    "tf.tanh({a}) * 0.7 + 0.1",
    "tf.nn.relu({a} - 0.1)",
    "tf.nn.gelu({a})",
    "tf.nn.softmax({a})",
    "tf.sqrt(tf.abs({a}) + 1.0)",
    "tf.where({a} > 0.0, {a}, {b})",
    "tf.reverse({a}, [0])",
    "tf.roll({a}, {n}, 0)",
    "tf.cumsum({a}, axis={n} % 2) * 0.01",
    "tf.sort({a})",
    "tf.cast(tf.cast({a}, tf.bfloat16), tf.float32)",
    "tf.transpose(tf.transpose({a}) * 0.5)",
    "tf.reshape(tf.reshape({a}, [-1]) + 1.0, {a}.shape)",
    "tf.concat([{a}[{n}:], {b}[:{n}]], 0)",
    "tf.concat(tf.split({a}, [1, {a}.shape[1] - 1], 1)[::-1], 1)",
    "tf.pad({a}, [[{n}, 0], [0, {n}]])[{n}:, :-{n}] if {n} else {a}",
    "tf.gather({a}, tf.range({a}.shape[0])[::-1])",
    "tf.tensor_scatter_nd_add({a}, [[{n}], [0]], {b}[:2])",
    "tf.math.unsorted_segment_sum({a}, tf.range({a}.shape[0]) // 2, {a}.shape[0])",
    "tf.matmul({a}, tf.matmul({b}, {a}, transpose_a=True)) * 1e-4",
    "{a} + tf.reduce_mean({b}, axis={n} % 2, keepdims=True)",
    "{a} + tf.math.top_k({b}, k=1)[0]",
    "tf.random.stateless_normal({a}.shape, ({s}, {n})) * 0.1 + {a}",
    "tf.nn.experimental.stateless_dropout({a}, 0.3, seed=({s}, {n}))",
    "{a} * {b}",
    "{a} - {b}",
    "tf.maximum({a}, {b})",
    "tf.add_n([{a}, {b}, {a} * 0.5, {b} * {b}])",
    "tf.stop_gradient({a}) * 0.5 + {b}",
    "tf.squeeze(tf.nn.conv2d({a}[None, :, :, None], tf.ones([3, 3, 1, 1]) / 9.0, 1, 'SAME'),"
    " [0, 3])",
    "tf.einsum('ij,kj->ik', {a}, {b})[:, :1] * 0.01 + {a}",
    "tf.stack([{a}, {b}])[{n} % 2] * 0.9",
    "tf.math.real(tf.signal.ifft(tf.signal.fft(tf.complex({a}, {b}))))",
    "tf.tile({a}, [2, 1])[1:{a}.shape[0] + 1]",
    "tf.cond(tf.reduce_sum({a}) > 0.0, lambda: {a} * 0.5, lambda: tf.cos({b}))",
    "tf.switch_case(tf.constant({n} % 3), [lambda: {a}, lambda: {b} * 2.0, lambda: tf.sin({a})])",
    "tf.while_loop(lambda i, s: i < {n}, lambda i, s: (i + 1, tf.sin(s) + {b}), (0, {a}))[1]",
    "tf.recompute_grad(lambda x: tf.sin(tf.cos(x)))({a})",
    "bounded({a})",
)

# Not for XLA: shapes that depend on data, Python, strings, lists, and ops that XLA computes
# nondeterministically.
HOST = (
    "tf.scan(lambda s, row: s * 0.5 + row, {a})",
    "tf.squeeze(tf.nn.max_pool2d({a}[None, :, :, None], 3, 1, 'SAME'), [0, 3])",
    "{a} + tf.reduce_sum(tf.boolean_mask({b}, {b} > 0.0)) * 0.001",
    "{a} + tf.reduce_sum(tf.unique(tf.reshape(tf.round(tf.stop_gradient({b})), [-1]))[0]) * 0.001",
    "tf.map_fn(lambda row: tf.sin(row) * 0.5, {a})",
    "tf.vectorized_map(lambda row: row / (1.0 + tf.reduce_max(tf.abs(row))), {a})",
    "tf.ensure_shape(tf.numpy_function(lambda x: np.cos(x), [{a}], tf.float32), {a}.shape)",
    "tf.ensure_shape(tf.py_function(lambda x: tf.sin(x) + 1.0, [{a}], tf.float32), {a}.shape)",
    "{a} + tf.cast(tf.strings.length(tf.strings.as_string({b}[:, :1])), tf.float32) * 0.01",
    "{a} + tf.cast(tf.strings.length(tf.io.serialize_tensor({b})), tf.float32) * 1e-6",
    "tf.sparse.to_dense(tf.sparse.from_dense(tf.nn.relu({a}))) - {b}",
    "tf.ragged.boolean_mask({a}, {a} > 0.0).to_tensor(shape={a}.shape) + {b}",
    "tf.reshape(tf.image.resize({a}[None, :, :, None], {a}.shape), {a}.shape)",
    "tf.linalg.band_part({a}, {n}, -1) + tf.linalg.diag_part(tf.matmul({b}, {b}, transpose_b=True)"
    ")[:, None] * 0.001",
)

# With a variable.
STATE = (
    "{a} + {v}",
    "{a} * {v}.read_value()",
    "{v}.assign_add({a} * 0.01) + {b}",
    "{v}.assign({a} * 0.5) - {b}",
    "{a} + {v}.scatter_nd_add([[{n}]], {b}[:1])",
    "{a} + tf.gather({v}, [{n}, 0])[:1]",
)

BOUNDED = '''\
@tf.custom_gradient
def bounded(x):
    return tf.clip_by_value(x, -2.0, 2.0), lambda gradient: gradient * 0.5
'''
