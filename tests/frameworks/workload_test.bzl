"""Tests that run a program of tests/workloads on the simulated GPU."""

def workload_test(name, allocators, program = None, args = [], gpus = 1):
    """One program, in a small size, on each allocator.

    Args:
      name: of the test.
      allocators: names that run_workload.py knows.
      program: file of tests/workloads without its ending, if it is not `name`.
      args: of the program.
      gpus: simulated devices.
    """
    native.py_test(
        name = name,
        # A framework starts in seconds, and in many more where everything is built at once.
        timeout = "long",
        srcs = ["//tests/frameworks:run_workload.py"],
        args = [
            "--gpus",
            str(gpus),
            "--allocators",
            ",".join(allocators),
            "tests/workloads/%s.py" % (program or name),
        ] + args,
        data = ["//tests/workloads:programs"],
        main = "//tests/frameworks:run_workload.py",
        deps = ["//tests/frameworks:run_workload"],
    )
