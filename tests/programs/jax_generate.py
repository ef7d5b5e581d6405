"""Random programs for JAX, each from a seed. On the simulated GPU their numbers mean nothing."""

import random

from tests.programs.statements import Statement
from tests.programs.statements import text_of

MEMORY = 1 << 30  # bytes of the device
BEYOND = (MEMORY + (MEMORY >> 1)) // 4  # floats

# Expressions over arrays of one shape that keep this shape. See tensor_ops.py.
OPERATIONS = (
    "jnp.sin({a})",
    "jax.nn.gelu({a}) + 1.0",
    "{a} * {b}",
    "{a} @ ({b}.T @ {a}) * 1e-4",
    "jnp.where({a} > 0, {a}, {b})",
    "jnp.concatenate([{a}[{n}:], {b}[:{n}]])",
    "jnp.sort({a}, axis={n} % 2)",
    "jnp.cumsum({a}, axis={n} % 2)",
    "jnp.roll({a}, {n}, axis=1)",
    "jax.nn.softmax({a})",
    "{a}.astype(jnp.bfloat16).astype(jnp.float32)",
    "{a}.at[{n}].add({b}[0])",
    "{a} + jax.random.normal(jax.random.key({s}), {a}.shape)",
    "{a} + jnp.mean({b}, axis=0)",
    "jax.vmap(lambda row: row / (1.0 + jnp.abs(row).max()))({a})",
    "jax.grad(lambda x: jnp.sum(jnp.sin(x) * {b}))({a})",
    "jax.grad(lambda x: jnp.sum(bounded(x) ** 2))({a})",
    "jax.checkpoint(lambda x: jnp.sin(jnp.cos(x)))({a})",
    "jax.lax.scan(lambda c, row: (c * 0.5 + row, c + 1.0), {a}[0], {a})[1]",
    "jax.lax.fori_loop(0, {n}, lambda i, x: jnp.sin(x) + {b}, {a})",
    "jax.lax.cond({a}[0, 0] > 0, lambda x: x * 2, lambda x: jnp.cos(x), {a})",
    "jnp.einsum('ij,kj->ik', {a}, {b})[:, :1] + {a}",
    "jax.lax.reduce_window({a}, -jnp.inf, jax.lax.max, (3, 3), (1, 1), 'SAME')",
    "jnp.take_along_axis({a}, jnp.argsort({b}, axis=0), axis=0)",
    "jax.lax.map(jnp.tanh, {a})",
)
WITHOUT_GRADIENT = (
    "jax.lax.while_loop(lambda s: s[0] < {n}, lambda s: (s[0] + 1, s[1] * {b}), (0, {a}))[1]",
)

HAZARDS = {
    "donation": ('''\
{f} = jax.jit(lambda x, y: (x + 1.0, jnp.sin(x) * y), donate_argnums=0)
{f}_state = {a} * 2.0
for _ in range({n} + 2):
    {f}_state, {f}_other = {f}({f}_state, {b})
show("{f}", ({f}_state, {f}_other))
''', '''\
{f} = {a} + 3.0
jax.jit(jnp.cos, donate_argnums=0)({f})
try:
    show("{f}", {f} + 1.0)
except (RuntimeError, ValueError) as error:
    print("{f}", type(error).__name__, flush=True)
'''),
    "threads": ('''\
{f} = jax.jit(lambda x: jnp.sin(x) @ x.T)
show("{f}", together(*(lambda i=i: [{f}({a} + float(i + k)) for k in range(3)]
                       for i in range({n} + 2))))
''',),
    "oom": ('''\
out_of_memory(lambda: jnp.ones((BEYOND,)))
show("{f}", jnp.sin({a}))
''', '''\
{f} = jax.jit(lambda x, y: (x + jnp.sort(jnp.broadcast_to(y, (BEYOND,)) + jnp.arange(BEYOND))[0],
                            jnp.cos(x)), donate_argnums=0)
out_of_memory(lambda: {f}({a} * 1.0, {b}[0, 0]))
show("{f}", jnp.cos({a}) + {b})
''', '''\
def {f}():
    kept = []
    while len(kept) < 16:
        kept.append(jnp.ones((BEYOND // 8,)).block_until_ready())
out_of_memory({f})
show("{f}", {a} * {b})
'''),
    "exceptions": ('''\
@jax.jit
def {f}(x):
    y = jnp.sin(x)
    return y @ y
try:
    show("{f}", {f}({a}[:, :-1]))
except TypeError as error:
    print("{f}", type(error).__name__, flush=True)
''',),
    "arrays": ('''\
{f} = [jax.device_put(np.ones(({n} + 1, 1000), np.float32)) for _ in range(20)]
for {f}_each in {f}[::2]:
    {f}_each.delete()
show("{f}", {f}[1::2])
''', '''\
{f} = jax.jit(lambda x: x * 2.0).lower({a}).compile()
show("{f}", [{f}({a}) for _ in range(3)])
jax.clear_caches()
'''),
}
FEATURES = ("functions", "training", *HAZARDS)
WAITING = ()

PRELUDE = '''\
import threading

import jax
import jax.numpy as jnp
import numpy as np

BEYOND = {beyond}  # floats: more than the device has


def show(name, value):
    """Shows shapes, because numbers mean nothing on a simulated GPU."""
    jax.block_until_ready(value)
    print(name, [(str(leaf.dtype), leaf.shape) for leaf in jax.tree.leaves(value)], flush=True)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def out_of_memory(function):
    try:
        jax.block_until_ready(function())
        print("fits", flush=True)
    except jax.errors.JaxRuntimeError as error:
        print(str(error).partition(":")[0], flush=True)


def together(*functions):
    """Runs each in a thread of its own, all at once."""
    results = [None] * len(functions)

    def run(index):
        results[index] = functions[index]()

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@jax.custom_vjp
def bounded(x):
    return jnp.clip(x, -2.0, 2.0)


bounded.defvjp(lambda x: (bounded(x), x), lambda x, g: (g * jnp.cos(x),))

'''

SHAPES = ((64, 64), (33, 100), (512, 512), (1000, 3000), (2048, 2048))


class Generator:
    """Writes one program. The arrays that are alive are in `arrays`."""

    def __init__(self, seed, features):
        self.random = random.Random(seed)
        self.features = features
        self.count = 0
        self.arrays, self.statements = [], []

    def name(self, kind):
        self.count += 1
        return f"{kind}_{self.count}"

    def add(self, *arguments, **more):
        self.statements.append(Statement(*arguments, **more))

    def filled(self, template, live, **more):
        return template.format(a=self.random.choice(live[-3:]), b=self.random.choice(live),
                               n=self.random.randint(0, 3), s=self.random.randint(0, 99), **more)

    def operation(self, live, choices=OPERATIONS + WITHOUT_GRADIENT):
        name = self.name("array")
        text = self.filled(self.random.choice(choices), live)
        statement = Statement(f"{name} = {text}", simpler=(f"{name} = {live[-1]}",))
        live.append(name)
        return statement

    def eager(self):
        for _ in range(self.random.randint(1, 4)):
            self.statements.append(self.operation(self.arrays))
        self.add(f'show("eager", {self.arrays[-1]})')

    def functions(self):
        name, argument = self.name("function"), self.name("array")
        live = [argument]
        body = tuple(self.operation(live) for _ in range(self.random.randint(2, 7)))
        kept = ", ".join(self.random.sample(live, 2))
        self.add(f"@jax.jit\ndef {name}({argument}):", body, f"return {kept}, {live[-1]}")
        result = self.name("array")
        self.add(f"{result} = {self.random.choice(self.arrays)}\n"
                 f"for _ in range({self.random.randint(1, 10)}):\n"
                 f"    {result} = {name}({result})[-1]\n"
                 f'show("{name}", {result})')
        self.arrays.append(result)

    def training(self):
        name, weights, argument = self.name("step"), self.name("weights"), self.name("array")
        live = [argument]
        body = [Statement(f"{argument} = {argument} * {weights}")]
        body += [self.operation(live, OPERATIONS) for _ in range(self.random.randint(1, 5))]
        loss = self.name("loss")
        self.add(f"def {loss}({weights}, {argument}):", tuple(body),
                 f"return jnp.mean({live[-1]} ** 2)")
        self.add(f"{name} = jax.jit(lambda w, x: w - 0.1 * jax.grad({loss})(w, x)"
                 f"{self.random.choice((')', ', donate_argnums=0)'))}")
        state = self.name("array")
        self.add(f"{state} = {self.random.choice(self.arrays)} + 0.0\n"
                 f"for _ in range({self.random.randint(2, 12)}):\n"
                 f"    {state} = {name}({state}, {self.random.choice(self.arrays)})\n"
                 f'show("{name}", {state})')

    def hazard(self, feature):
        text = self.random.choice(HAZARDS[feature])
        self.add(self.filled(text, self.arrays, f=self.name("part")).rstrip("\n"))

    def program(self):
        rows, cols = self.random.choice(SHAPES)
        for _ in range(2):
            self.arrays.append(self.name("array"))
            self.add(f"{self.arrays[-1]} = jnp.asarray(numbers({rows}, {cols}, seed={self.count}))")
        ways = [self.eager] + [getattr(self, name) for name in ("functions", "training")
                               if name in self.features] * 2
        ways += [lambda name=name: self.hazard(name) for name in HAZARDS if name in self.features]
        for _ in range(self.random.randint(2, 5)):
            self.random.choice(ways)()
        self.add(f'show("end", [{", ".join(self.arrays)}])')
        return tuple(self.statements)


def generated(seed, features=FEATURES):
    return Generator(seed, features).program()


def source(statements, _):
    """The program as plain Python."""
    return PRELUDE.format(beyond=BEYOND) + text_of(statements)
