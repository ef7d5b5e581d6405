"""Programs of flax and optax, as their users write them: a few steps of training each."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy
import optax
from flax import nnx

STEPS = 3
BATCH, WIDTH, CLASSES, TOKENS = 32, 256, 10, 48

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def features():
    return numpy.ones((BATCH, WIDTH), numpy.float32)


def images():
    return numpy.ones((BATCH, 32, 32, 3), numpy.float32)


def sequence():
    return numpy.ones((BATCH, TOKENS, WIDTH), numpy.float32)


def tokens():
    return numpy.ones((BATCH, TOKENS), numpy.int32)


def mean_loss(outputs):
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(
        outputs, jnp.zeros(outputs.shape[:-1], jnp.int32)))


def train(module, x, optimizer, apply=None, donate=False):
    """The loop of linen's tutorials: init, one compiled step, a few of them."""
    apply = apply or module.apply
    variables = jax.jit(module.init)(jax.random.key(0), x)
    state = jax.jit(optimizer.init)(variables)

    @functools.partial(jax.jit, donate_argnums=(0, 1) if donate else ())
    def step(variables, state, x):
        loss, gradients = jax.value_and_grad(lambda v: mean_loss(apply(v, x)))(variables)
        updates, state = optimizer.update(gradients, state, variables)
        return optax.apply_updates(variables, updates), state, loss

    for _ in range(STEPS):
        variables, state, loss = step(variables, state, x)
    loss.block_until_ready()


class Mlp(nn.Module):
    dtype: object = jnp.float32

    @nn.compact
    def __call__(self, x):
        for _ in range(3):
            x = nn.relu(nn.Dense(4 * WIDTH, dtype=self.dtype)(x))
        return nn.Dense(CLASSES)(x)


class Cnn(nn.Module):
    norm: object = nn.GroupNorm

    @nn.compact
    def __call__(self, x):
        for channels in (32, 64):
            x = nn.Conv(channels, (3, 3))(x)
            x = nn.avg_pool(nn.relu(self.norm()(x)), (2, 2), (2, 2))
        return nn.Dense(CLASSES)(x.reshape(x.shape[0], -1))


class Block(nn.Module):

    @nn.compact
    def __call__(self, x, _=None):
        x = x + nn.MultiHeadDotProductAttention(4)(nn.LayerNorm()(x))
        x = x + nn.Dense(WIDTH)(nn.gelu(nn.Dense(4 * WIDTH)(nn.LayerNorm()(x))))
        return x, None


class Transformer(nn.Module):
    remat: bool = False
    scan: bool = False

    @nn.compact
    def __call__(self, x):
        x = nn.Embed(1000, WIDTH)(x)
        block = nn.remat(Block) if self.remat else Block
        if self.scan:
            x, _ = nn.scan(block, {"params": 0}, split_rngs={"params": True}, length=3)()(x, None)
        else:
            for _ in range(2):
                x, _ = block()(x)
        return nn.Dense(1000)(x)


class Recurrent(nn.Module):
    cell: object

    @nn.compact
    def __call__(self, x):
        return nn.Dense(CLASSES)(nn.RNN(self.cell(WIDTH))(x))


@program
def mlp_adam():
    train(Mlp(), features(), optax.adam(1e-3))


@program
def mlp_donated():
    train(Mlp(), features(), optax.adam(1e-3), donate=True)


@program
def mlp_bfloat16():
    train(Mlp(jnp.bfloat16), features(), optax.lion(1e-4))


@program
def mlp_schedule_and_clipping():
    rate = optax.warmup_cosine_decay_schedule(0, 1e-3, 2, 10)
    train(Mlp(), features(), optax.chain(optax.clip_by_global_norm(1), optax.adamw(rate)))


@program
def mlp_accumulated():
    train(Mlp(), features(), optax.MultiSteps(optax.adam(1e-3), 2))


@program
def mlp_ema():
    train(Mlp(), features(), optax.chain(optax.adam(1e-3), optax.ema(0.9)))


@program
def cnn_momentum():
    train(Cnn(), images(), optax.sgd(0.1, momentum=0.9, nesterov=True))


@program
def cnn_lamb():
    train(Cnn(functools.partial(nn.LayerNorm, use_bias=False)), images(), optax.lamb(1e-3))


@program
def cnn_batch_norm():
    class Normed(nn.Module):

        @nn.compact
        def __call__(self, x, train=True):
            x = nn.BatchNorm(use_running_average=not train)(nn.Conv(32, (3, 3))(x))
            return nn.Dense(CLASSES)(x.mean((1, 2)))

    module, x, optimizer = Normed(), images(), optax.rmsprop(1e-3)
    variables = jax.jit(module.init)(jax.random.key(0), x)
    params, statistics = variables["params"], variables["batch_stats"]
    state = jax.jit(optimizer.init)(params)

    @jax.jit
    def step(params, statistics, state):
        def loss(params):
            outputs, changed = module.apply({"params": params, "batch_stats": statistics}, x,
                                            mutable=["batch_stats"])
            return mean_loss(outputs), changed["batch_stats"]

        gradients, statistics_now = jax.grad(loss, has_aux=True)(params)
        updates, state_now = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), statistics_now, state_now

    for _ in range(STEPS):
        params, statistics, state = step(params, statistics, state)
    jax.block_until_ready(params)


@program
def cnn_transposed():
    class UNet(nn.Module):

        @nn.compact
        def __call__(self, x):
            low = nn.relu(nn.Conv(32, (3, 3), strides=(2, 2))(x))
            high = nn.ConvTranspose(32, (3, 3), strides=(2, 2))(low)
            return nn.Conv(CLASSES, (1, 1))(jnp.concatenate([x, high], -1))

    train(UNet(), images(), optax.adabelief(1e-3))


@program
def transformer_adamw():
    train(Transformer(), tokens(), optax.adamw(1e-3))


@program
def transformer_remat():
    train(Transformer(remat=True), tokens(), optax.adamw(1e-3))


@program
def transformer_scan():
    train(Transformer(scan=True), tokens(), optax.adafactor(1e-3))


@program
def transformer_lengths():
    """A different shape in every step, with a compiled program for each."""
    module = Transformer()
    variables = jax.jit(module.init)(jax.random.key(0), tokens())
    gradient = jax.jit(jax.grad(lambda v, x: mean_loss(module.apply(v, x))))
    for length in (16, TOKENS, 32):
        gradients = gradient(variables, tokens()[:, :length])
        variables = jax.tree.map(lambda v, g: v - 0.1 * g, variables, gradients)
    jax.block_until_ready(variables)


@program
def lstm():
    train(Recurrent(nn.LSTMCell), sequence(), optax.adam(1e-3))


@program
def gru():
    train(Recurrent(nn.GRUCell), sequence(), optax.adamax(1e-3))


@program
def dropout():
    class Dropped(nn.Module):

        @nn.compact
        def __call__(self, x):
            x = nn.Dropout(0.5, deterministic=False)(nn.relu(nn.Dense(4 * WIDTH)(x)))
            return nn.Dense(CLASSES)(x)

    module = Dropped()
    keys = {"params": jax.random.key(0), "dropout": jax.random.key(1)}
    variables = jax.jit(module.init)(keys, features())
    optimizer = optax.adam(1e-3)
    state = jax.jit(optimizer.init)(variables)

    @jax.jit
    def step(variables, state, key):
        gradients = jax.grad(lambda v: mean_loss(
            module.apply(v, features(), rngs={"dropout": key})))(variables)
        updates, state = optimizer.update(gradients, state)
        return optax.apply_updates(variables, updates), state

    for key in jax.random.split(jax.random.key(2), STEPS):
        variables, state = step(variables, state, key)
    jax.block_until_ready(variables)


@program
def ensemble():
    """Four models at once, by vmap."""
    module, optimizer = Mlp(), optax.sgd(0.1)
    variables = jax.jit(jax.vmap(lambda key: module.init(key, features())))(
        jax.random.split(jax.random.key(0), 4))
    state = jax.jit(jax.vmap(optimizer.init))(variables)

    @jax.jit
    @jax.vmap
    def step(variables, state):
        gradients = jax.grad(lambda v: mean_loss(module.apply(v, features())))(variables)
        updates, state = optimizer.update(gradients, state)
        return optax.apply_updates(variables, updates), state

    for _ in range(STEPS):
        variables, state = step(variables, state)
    jax.block_until_ready(variables)


@program
def gan():
    """Two models and two optimizers in turn."""
    generator, critic = nn.Dense(WIDTH), Mlp()
    noise, optimizer = features(), optax.adam(2e-4, b1=0.5)
    made = jax.jit(generator.init)(jax.random.key(0), noise)
    judged = jax.jit(critic.init)(jax.random.key(1), noise)
    states = [jax.jit(optimizer.init)(made), jax.jit(optimizer.init)(judged)]

    def update(loss, variables, state):
        updates, state = optimizer.update(jax.grad(loss)(variables), state)
        return optax.apply_updates(variables, updates), state

    @jax.jit
    def improve_critic(made, judged, state):
        fake = generator.apply(made, noise)
        return update(lambda v: mean_loss(critic.apply(v, noise)) -
                      mean_loss(critic.apply(v, fake)), judged, state)

    @jax.jit
    def improve_generator(made, judged, state):
        return update(lambda v: mean_loss(critic.apply(judged, generator.apply(v, noise))),
                      made, state)

    for _ in range(STEPS):
        judged, states[1] = improve_critic(made, judged, states[1])
        made, states[0] = improve_generator(made, judged, states[0])
    jax.block_until_ready(made)


@program
def nnx_mlp():
    class Model(nnx.Module):

        def __init__(self, rngs):
            self.first = nnx.Linear(WIDTH, 4 * WIDTH, rngs=rngs)
            self.norm = nnx.BatchNorm(4 * WIDTH, rngs=rngs)
            self.last = nnx.Linear(4 * WIDTH, CLASSES, rngs=rngs)

        def __call__(self, x):
            return self.last(nnx.relu(self.norm(self.first(x))))

    _train_nnx(Model(nnx.Rngs(0)), features())


@program
def nnx_attention():
    class Model(nnx.Module):

        def __init__(self, rngs):
            self.attention = nnx.MultiHeadAttention(4, WIDTH, decode=False, rngs=rngs)
            self.last = nnx.Linear(WIDTH, CLASSES, rngs=rngs)

        def __call__(self, x):
            return self.last(self.attention(x))

    _train_nnx(Model(nnx.Rngs(0)), sequence())


def _train_nnx(model, x):
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer, x):
        loss, gradients = nnx.value_and_grad(lambda model: mean_loss(model(x)))(model)
        optimizer.update(model, gradients)
        return loss

    for _ in range(STEPS):
        loss = step(model, optimizer, x)
    loss.block_until_ready()


@program
def held_and_dropped():
    """Eager arrays that live for different times, as in a notebook."""
    held = []
    for step in range(12):
        held.append(jnp.ones((64 + step, 4096)))
        if step % 3 == 2:
            del held[0]
        jax.block_until_ready(jnp.concatenate(held))
