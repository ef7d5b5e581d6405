"""`thimble run`: runs a program on Thimble and summarizes the run."""

import os
import signal
import subprocess

from thimble_gpu import abi
from thimble_gpu import conf
from thimble_gpu import files
from thimble_gpu import live
from thimble_gpu import summary
from thimble_gpu import temporary
from thimble_gpu import text
from thimble_gpu.commands import report

# A log grows by 48 bytes with every allocation, free and use. This bound, 96 MB per device, covers
# hundreds of training steps; later ones are similar.
MOST_EVENTS = 2_000_000

# With these options, uses of memory cannot be watched, or are watched anyway.
NOT_WATCHED = {"swap", "plan", *conf.FRONT_KEYS}

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1,
             signal.SIGUSR2)
NOT_FOUND, NOT_EXECUTABLE = 127, 126  # as in shells


def add_to(commands):
    parser = commands.add_parser(
        "run", help="run a program on Thimble and print a summary at its end",
        usage="thimble run [--conf CONF] [--limit SIZE] [--report PAGE.html] -- COMMAND ...")
    parser.add_argument(
        "--conf", help="options of Thimble, key:value,key:value (default: THIMBLE_CONF)")
    parser.add_argument("--limit", help="most memory to take of each device, such as 8GiB")
    parser.add_argument("--report", metavar="PAGE.html",
                        help="draw where memory went, as `thimble report` does")
    parser.add_argument("program", nargs="...", metavar="-- COMMAND ...")
    parser.set_defaults(function=lambda options: _run(parser, options))


def environment(options, folder, given):
    """Returns the variables with which a program runs on Thimble. Raises ThimbleError."""
    conf.check(options)
    keys = dict(conf.entries(options))
    if "log" in keys or "log_events" in keys:
        raise abi.ThimbleError("option 'log': thimble run writes a log of its own: leave it out")
    if "," in folder:
        raise abi.ThimbleError(f"the folder for temporary files, {folder}, has a comma in its "
                               "name: set TMPDIR to another one")
    variables = dict(given)
    for framework in frameworks(keys):
        variables[conf.VARIABLES[framework]] = "thimble"
    if keys.get("device") == "cpu":
        variables.pop(conf.VARIABLES["tensorflow"], None)  # THIMBLE_CONF is enough
    own = [f"log:{folder}/%p.log,log_events:{MOST_EVENTS}"]
    if not NOT_WATCHED & keys.keys():
        own.append("swap:watch")  # so that reports say whether swap:auto would help
    variables["THIMBLE_CONF"] = ",".join(filter(None, (options.strip(), *own)))
    return variables


def frameworks(keys):
    """Returns the frameworks that support the options."""
    if keys.get("device") == "cpu":
        return []
    own = {key: conf.FRONT_KEYS[key] for key in keys if key in conf.FRONT_KEYS}
    wanted = set(own.values() or conf.VARIABLES)
    if keys.get("swap") == "auto":
        wanted.discard("jax")  # which does not announce what it uses
    if own and len(wanted) == 2:
        names = " and ".join(f"'{key}' ({framework})" for key, framework in own.items())
        raise abi.ThimbleError(f"options {names} contradict each other: leave out those of one "
                               "framework")
    return sorted(wanted)


def _run(parser, options):
    program = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not program:
        parser.error("no command given: write thimble run -- python train.py")
    asked = os.environ.get("THIMBLE_CONF", "") if options.conf is None else options.conf
    if options.limit is not None:
        asked = ",".join(filter(None, (asked.strip(), f"limit:{options.limit}")))
    if options.report is not None:
        try:
            files.check(options.report)
        except OSError as error:
            parser.error(f"--report {options.report} cannot be written: {error.strerror}. Name a "
                         "file in a folder that is there and that you may write to")
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # a summary that nobody reads changes no status
    with temporary.folder(live.FOLDER_PREFIX) as (folder, kept):
        try:
            variables = environment(asked, folder, os.environ)
        except abi.ThimbleError as error:
            parser.error(str(error))
        try:
            status = _wait_for(program, variables, kept)
        except OSError as error:
            return _not_started(program[0], error)
        if status < 0:
            text.say(f"the program {text.how_ended(status)}")
        logs = summary.write(folder, asked, failed=status != 0)
        if options.report is not None:
            _draw(logs, options.report)
    if status < 0:
        text.end_by(-status)
    return status


def _not_started(name, error):
    if isinstance(error, FileNotFoundError):
        text.say(f"{name}: command not found")
        return NOT_FOUND
    text.say(f"{name}: {error.strerror}")
    return NOT_EXECUTABLE


def _draw(logs, path):
    """Writes a page for every device: PAGE.html, PAGE-2.html and so on."""
    if not logs:
        text.say(f"{path} was not written: the run wrote no log")
    stem, extension = os.path.splitext(path)
    for number, log in enumerate(logs, start=1):
        out = path if number == 1 else f"{stem}-{number}{extension}"
        try:
            report.write(log.path, out, log.place, log.comparison)
        except OSError as error:
            text.say(f"{out} was not written: {error.strerror}")
        except abi.ThimbleError as error:
            text.say(f"{out} was not written: {error}")
        else:
            text.say(f"{out} shows where the memory of {log.place} went")


def _wait_for(program, variables, kept):
    """Runs the program and forwards signals to it. Returns its status, negative if a signal ended
    it. Raises OSError if it cannot be started."""
    waited = {*PASSED_ON, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    try:
        child = subprocess.Popen(
            program, env=variables, pass_fds=(kept,),
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before))
        while child.poll() is None:
            arrived = signal.sigwaitinfo(waited)
            # The kernel sends a terminal's signals to the program, too.
            if arrived.si_signo != signal.SIGCHLD and arrived.si_pid != 0:
                child.send_signal(arrived.si_signo)
        return child.returncode
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
