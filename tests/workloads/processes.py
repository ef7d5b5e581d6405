"""Starts a program several times on this machine, as the workers of one job."""

import os
import socket
import subprocess
import sys
import tempfile
import time

WORKER = "WORKLOAD_WORKER"


def free_ports(count):
    """Returns free ports. All are held until the last is found, so they differ."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def rank():
    """This worker's number, or None in the process that starts them."""
    return int(os.environ[WORKER]) if WORKER in os.environ else None


def start(count, environment_of):
    """Runs this program `count` times, then exits with the first one's output, or with a
    failure."""
    outputs = [tempfile.TemporaryFile() for _ in range(count)]
    workers = [
        subprocess.Popen([sys.executable, *sys.argv], stdout=outputs[number],
                         env={**os.environ, WORKER: str(number), **environment_of(number)})
        for number in range(count)
    ]
    statuses = [None] * count
    while None in statuses and not any(statuses):
        time.sleep(0.1)
        statuses = [worker.poll() for worker in workers]
    for worker in workers:  # after a failure the others would wait for the lost one
        if worker.poll() is None:
            worker.kill()
    for number, output in enumerate(outputs if any(statuses) else outputs[:1]):
        output.seek(0)
        print(output.read().decode(errors="replace"), end="", flush=True)
    sys.exit(f"status of the workers: {statuses}" if any(statuses) else 0)
