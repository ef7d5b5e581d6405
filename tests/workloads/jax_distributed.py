"""Several processes on this machine: jax.distributed, one computation over all their GPUs."""

import os

import processes
import program

COORDINATOR = "WORKLOAD_COORDINATOR"


def train(options):
    import jax
    jax.distributed.initialize(coordinator_address=os.environ[COORDINATOR],
                               num_processes=options.workers, process_id=processes.rank(),
                               local_device_ids=[0])
    import jax_program
    import jax_sharding
    import jax.numpy as jnp
    import numpy as np

    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
    sharded = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    local = np.zeros((options.batch // options.workers, 784), np.float32)
    x = jax.make_array_from_process_local_data(sharded, local)
    parameters = {"first": jnp.full((784, options.width), 0.01),
                  "second": jnp.full((options.width, 10), 0.01)}

    @jax.jit
    def step(parameters, x):
        gradients = jax.grad(jax_sharding.loss)(parameters, x)
        return jax.tree.map(lambda p, g: p - 0.01 * g, parameters, gradients)

    usage = jax_program.Usage()
    for _ in range(options.steps):
        parameters = jax.block_until_ready(step(parameters, x))
        usage.note()
    program.report("jax_distributed", usage, devices=jax.device_count(),
                   processes=jax.process_count())
    jax.distributed.shutdown()


if __name__ == "__main__":
    parser = program.parser(__doc__, batch=256)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--workers", type=program.positive, default=2)
    parsed = parser.parse_args()
    if processes.rank() is None:
        address = f"127.0.0.1:{processes.free_ports(1)[0]}"
        processes.start(parsed.workers, lambda number: {COORDINATOR: address})
    train(parsed)
