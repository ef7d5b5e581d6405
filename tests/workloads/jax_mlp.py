"""A multilayer perceptron."""

import jax
import jax.numpy as jnp
import jax_program
import numpy as np
import program


def loss(parameters, x, y):
    for weights, bias in parameters[:-1]:
        x = jax.nn.relu(x @ weights + bias)
    weights, bias = parameters[-1]
    return jax_program.cross_entropy(x @ weights + bias, y)


if __name__ == "__main__":
    parser = program.parser(__doc__, batch=256)
    parser.add_argument("--width", type=int, default=2048)
    options = parser.parse_args()
    sizes = [784, options.width, options.width, 10]
    parameters = [(jnp.full((a, b), 0.01), jnp.zeros(b)) for a, b in zip(sizes, sizes[1:])]
    batch = (np.random.default_rng(0).random((options.batch, 784), np.float32),
             np.arange(options.batch, dtype=np.int32) % 10)
    jax_program.train("jax_mlp", loss, parameters, [batch] * options.steps)
