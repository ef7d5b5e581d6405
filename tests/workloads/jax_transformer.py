"""A transformer; with --donate, parameters are updated where they lie."""

import jax_program
import jax_transformer_model as model
import program

if __name__ == "__main__":
    parser = model.add_options(program.parser(__doc__, batch=8))
    parser.add_argument("--donate", action="store_true")
    options = parser.parse_args()
    batches = [(model.words(options),)] * options.steps
    jax_program.train("jax_transformer", model.make_loss(options.heads),
                      model.new_parameters(options), batches, donate=options.donate,
                      donated=options.donate)
