"""Several processes on this machine: tf.distribute.MultiWorkerMirroredStrategy."""

import json

import processes


def worker_environment(ports):
    addresses = [f"127.0.0.1:{port}" for port in ports]
    return lambda number: {"TF_CONFIG": json.dumps({
        "cluster": {"worker": addresses}, "task": {"type": "worker", "index": number}})}


def train(options):
    import keras_program
    import program
    import tensorflow as tf

    nccl = tf.distribute.experimental.CommunicationImplementation.NCCL
    strategy = tf.distribute.MultiWorkerMirroredStrategy(
        communication_options=tf.distribute.experimental.CommunicationOptions(implementation=nccl))
    with strategy.scope():
        weights = [tf.Variable(tf.zeros((784, options.width))),
                   tf.Variable(tf.zeros((options.width, 10)))]

    @tf.function
    def step(x):
        def replica(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(tf.nn.relu(x @ weights[0]) @ weights[1]))
            gradients = tape.gradient(loss, weights)
            context = tf.distribute.get_replica_context()
            for weight, total in zip(weights, context.all_reduce("sum", gradients)):
                weight.assign_sub(0.01 * total)
        strategy.run(replica, args=(x,))

    usage = keras_program.Usage()
    for _ in range(options.steps):
        step(tf.zeros((options.batch, 784)))
        usage.note()
    program.report("multi_worker", usage, replicas=strategy.num_replicas_in_sync)


if __name__ == "__main__":
    import program
    parser = program.parser(__doc__, batch=256)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--workers", type=program.positive, default=2)
    parsed = parser.parse_args()
    if processes.rank() is None:
        processes.start(parsed.workers, worker_environment(processes.free_ports(parsed.workers)))
    train(parsed)
