"""A transformer that computes activations again instead of keeping them (jax.checkpoint)."""

import jax
import jax_program
import jax_transformer_model as model
import program

if __name__ == "__main__":
    options = model.add_options(program.parser(__doc__, batch=8)).parse_args()
    jax_program.train("jax_remat", model.make_loss(options.heads, wrap=jax.checkpoint),
                      model.new_parameters(options), [(model.words(options),)] * options.steps)
