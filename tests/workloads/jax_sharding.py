"""One process, all its GPUs: a batch sharded over devices under jit, then the same with pmap."""

import jax
import jax.numpy as jnp
import jax_program
import numpy as np
import program
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def loss(parameters, x):
    hidden = jax.nn.relu(x @ parameters["first"])
    return jnp.square(hidden @ parameters["second"]).mean()


def with_jit(parameters, x, steps, usage):
    mesh = Mesh(np.array(jax.devices()), ("data",))
    everywhere = NamedSharding(mesh, PartitionSpec())
    parameters = jax.device_put(parameters, everywhere)
    x = jax.device_put(x, NamedSharding(mesh, PartitionSpec("data")))

    @jax.jit
    def step(parameters, x):
        gradients = jax.grad(loss)(parameters, x)
        return jax.tree.map(lambda p, g: p - 0.01 * g, parameters, gradients)

    for _ in range(steps):
        parameters = jax.block_until_ready(step(parameters, x))
        usage.note()


def with_pmap(parameters, x, steps, usage):
    count = jax.device_count()
    parameters = jax.tree.map(lambda p: jnp.broadcast_to(p, (count, *p.shape)), parameters)

    def update(parameters, x):
        gradients = jax.lax.pmean(jax.grad(loss)(parameters, x), "devices")
        return jax.tree.map(lambda p, g: p - 0.01 * g, parameters, gradients)

    step = jax.pmap(update, axis_name="devices")
    shards = x.reshape(count, -1, x.shape[-1])
    for _ in range(steps):
        parameters = jax.block_until_ready(step(parameters, shards))
        usage.note()


if __name__ == "__main__":
    parser = program.parser(__doc__, batch=256)
    parser.add_argument("--width", type=int, default=2048)
    options = parser.parse_args()
    weights = {"first": jnp.full((784, options.width), 0.01),
               "second": jnp.full((options.width, 10), 0.01)}
    data = np.zeros((options.batch, 784), np.float32)
    noted = jax_program.Usage()
    with_jit(weights, data, options.steps, noted)
    with_pmap(weights, data, options.steps, noted)
    program.report("jax_sharding", noted, devices=jax.device_count())
