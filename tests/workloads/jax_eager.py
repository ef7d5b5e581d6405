"""Operations one by one, outside of jit: every result is an allocation of its own."""

import jax.numpy as jnp
import jax_program
import program

if __name__ == "__main__":
    parser = program.parser(__doc__, steps=10, batch=512)
    parser.add_argument("--width", type=int, default=512)
    options = parser.parse_args()
    usage = jax_program.Usage()
    x = jnp.ones((options.batch, options.width))
    for _ in range(options.steps):
        y = jnp.sin(x * 2) + x
        z = jnp.concatenate([y, y.T @ x], axis=0)
        total = jnp.cumsum(jnp.sort(z, axis=0), axis=0).sum()
        total.block_until_ready()
        del y, z, total
        usage.note()
    program.report("jax_eager", usage)
