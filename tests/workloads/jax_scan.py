"""A transformer whose layers are one loop over stacked weights (jax.lax.scan)."""

import jax
import jax.numpy as jnp
import jax_program
import jax_transformer_model as model
import program


def make_loss(heads):
    def loss(parameters, words):
        x = parameters["words"][words]
        x, _ = jax.lax.scan(lambda x, p: (model.block(heads, x, p), None), x, parameters["stack"])
        return jax_program.cross_entropy(x @ parameters["words"].T, words)
    return loss


if __name__ == "__main__":
    options = model.add_options(program.parser(__doc__, batch=8)).parse_args()
    plain = model.new_parameters(options)
    stacked = {
        "words": plain["words"],
        "stack": jax.tree.map(lambda *layers: jnp.stack(layers), *plain["blocks"]),
    }
    jax_program.train("jax_scan", make_loss(options.heads), stacked,
                      [(model.words(options),)] * options.steps)
