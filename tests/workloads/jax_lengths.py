"""A transformer on sentences of varying length: one compiled step per length, in turn."""

import jax_program
import jax_transformer_model as model
import program

if __name__ == "__main__":
    parser = model.add_options(program.parser(__doc__, steps=8, batch=8))
    parser.add_argument("--lengths", type=program.positive, default=4, help="how many")
    options = parser.parse_args()
    lengths = [options.tokens * (i + 1) // options.lengths for i in range(options.lengths)]
    batches = [(model.words(options, lengths[step * 3 % len(lengths)]),)
               for step in range(options.steps)]
    jax_program.train("jax_lengths", model.make_loss(options.heads),
                      model.new_parameters(options), batches)
