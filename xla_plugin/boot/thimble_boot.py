"""Makes XLA_PYTHON_CLIENT_ALLOCATOR=thimble work in an unmodified JAX program.

thimble.pth imports this module when the interpreter starts, but only if the variable is set. The
module waits for jaxlib and then does three things:

  - It loads Thimble's driver front, which the loader knows by the CUDA driver's name, before JAX's
    plugin asks the loader for that name.
  - It tells JAX's plugin `cuda_async`, a mode in which JAX sends every buffer to the driver.
  - It adds Thimble's report about a request that did not fit to the exception that JAX raises.

If anything is wrong, the module writes one line to stderr and JAX uses its own default allocator.
Otherwise JAX would reject the word `thimble` and silently run without the GPU.
"""

import importlib.abc
import importlib.util
import os
import sys

VARIABLE = "XLA_PYTHON_CLIENT_ALLOCATOR"
CLIENT_OPTIONS = "jax_pjrt_client_create_options"  # of jax.config, and as a variable in capitals
JAXLIB_VERSIONS = ("0.10.2",)  # tested with these; others may use other names
DRIVER = "libcuda.so.1"
FRONT = os.path.join("thimble_gpu", "lib", "libthimble_xla.so")
FRONT_ABI_VERSION = 2
MOST_OF_A_REPORT = 8192  # bytes
HOOKED = "jaxlib.xla_client"


class Refused(Exception):
    """Thimble cannot serve this process; the text says why and what to do."""


def say(text):
    sys.stderr.write(f"thimble: {text}\n")


def say_unused(reason):
    own = client_options().get("allocator", "default")
    say(f"not in use, JAX has its {own} allocator: {reason}")


# --- The driver and the front ---------------------------------------------------------------------


def loaded(name):
    """Returns the library that the process has loaded by this name, or None."""
    import ctypes
    try:
        return ctypes.CDLL(name, mode=os.RTLD_NOLOAD)
    except OSError:
        return None


def candidates():
    """Yields the paths where the loader would look for the driver, in its order.

    The loader itself must not be asked: once it has loaded a driver by name, that driver always
    comes before the front.
    """
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        yield os.path.join(folder or ".", DRIVER)
    yield from cached_candidates()
    machine = os.uname().machine
    for folder in (f"/lib/{machine}-linux-gnu", f"/usr/lib/{machine}-linux-gnu", "/lib64",
                   "/usr/lib64", "/lib", "/usr/lib"):
        yield os.path.join(folder, DRIVER)


def cached_candidates():
    """Yields the driver's entries in the loader's cache: 'NAME (libc6,x86-64) => PATH'."""
    import subprocess
    kind = {"x86_64": "x86-64", "aarch64": "AArch64"}.get(os.uname().machine, "")
    try:
        cache = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True,
                               check=False).stdout
    except OSError:
        return
    for line in cache.splitlines():
        entry, arrow, path = line.strip().partition(" => ")
        if arrow and entry.startswith(DRIVER + " ") and kind in entry:
            yield path


def find_driver():
    for path in candidates():
        if os.path.exists(path):
            return os.path.abspath(path)
    raise Refused(f"this machine has no CUDA driver: {DRIVER} is neither in LD_LIBRARY_PATH nor "
                  "where the loader looks")


def load_front():
    """Returns the front, open on the driver but still off."""
    import ctypes
    known = loaded(DRIVER)
    if hasattr(known, "thimble_front_abi_version"):
        raise Refused("this process has loaded another copy of Thimble: uninstall one of them")
    if known is not None:
        raise Refused(f"something has loaded the CUDA driver before JAX: import jax first, or "
                      f"import thimble_boot before what loads {DRIVER}")
    driver = find_driver()
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), FRONT)
    try:
        front = ctypes.CDLL(path)
        version = front.thimble_front_abi_version()
    except (OSError, AttributeError) as error:
        raise Refused(f"the front does not load ({error}): install thimble-gpu again") from error
    if version != FRONT_ABI_VERSION:
        raise Refused(f"{path} is of another version of Thimble: install thimble-gpu again")
    front.thimble_front_open.restype = ctypes.c_char_p
    front.thimble_front_start.restype = ctypes.c_char_p
    front.thimble_front_start.argtypes = [ctypes.c_char_p, ctypes.c_double, ctypes.c_int]
    front.thimble_front_fraction.restype = ctypes.c_double
    front.thimble_front_take_failure.restype = ctypes.c_size_t
    front.thimble_front_take_failure.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    error = front.thimble_front_open(driver.encode())
    if error:
        raise Refused(f"the CUDA driver {driver} does not open: {error.decode()}")
    return front


# --- JAX ------------------------------------------------------------------------------------------


def check_version():
    from jaxlib.version import __version__ as version
    if version not in JAXLIB_VERSIONS:
        raise Refused(f"jaxlib is {version}, and Thimble is tested with "
                      f"{', '.join(JAXLIB_VERSIONS)}: install that one, or unset {VARIABLE}")


def check_copies():
    here = os.path.realpath(__file__)
    files = {os.path.realpath(os.path.join(folder, "thimble_boot.py")) for folder in sys.path}
    others = sorted(file for file in files if file != here and os.path.exists(file))
    if others:
        say(f"installed more than once: {here} is used, uninstall {', '.join(others)}")


def wants_gpu():
    """Returns False if JAX was told not to use the GPU; then there is nothing to do."""
    jax = sys.modules.get("jax")
    platforms = getattr(getattr(jax, "config", None), "jax_platforms", None)
    platforms = platforms or os.environ.get("JAX_PLATFORMS", "")
    names = [name.strip() for name in platforms.split(",") if name.strip()]
    return not names or "cuda" in names or "gpu" in names


def client_options():
    """Returns the options that the user gives JAX's plugin through JAX. They override those that
    this module gives."""
    options = getattr(getattr(sys.modules.get("jax"), "config", None), CLIENT_OPTIONS, None) or {}
    if isinstance(options, str):  # JAX itself refuses malformed text
        options = dict(entry.split(":", 1) for entry in options.split(";") if ":" in entry)
    return options


def numbers(options):
    """Returns the options whose values are numbers. JAX refuses texts in their place."""
    return {name: value for name, value in options.items() if not isinstance(value, str)}


def check_allocator(name):
    """Refuses to serve if the user chose an allocator other than the one that Thimble needs."""
    if name not in (None, "cuda_async"):
        raise Refused(f"{CLIENT_OPTIONS} says allocator:{name}, which JAX follows: leave it out "
                      f"there, or unset {VARIABLE}")


def with_allocator(name, function):
    """Calls the function while the variable has another value."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = name
    try:
        return function()
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def start(front, options):
    """Turns the front on with JAX's own variables and THIMBLE_CONF."""
    error = front.thimble_front_start(os.environ.get("THIMBLE_CONF", "").encode(),
                                      options.get("memory_fraction", 0.0),
                                      options.get("preallocate", False))
    if error:
        raise Refused(error.decode())


def front_options(front, options):
    """Returns the options for JAX's plugin.

    `preallocate` makes the plugin count with a limit, which is the arenas'. It reserves nothing:
    only the arenas take memory in advance, and only if the user asked for that.
    """
    return {**options, "preallocate": True, "memory_fraction": front.thimble_front_fraction()}


def explain_failures(front, error_class):
    """Adds Thimble's report to exceptions about memory, as a note. Notebooks show notes in
    tracebacks, but not what a library writes to stderr. Before Python 3.11, exceptions have no
    notes, so the report ends their text."""
    import ctypes
    original = error_class.__init__

    def take_note():
        report = ctypes.create_string_buffer(MOST_OF_A_REPORT)
        if not front.thimble_front_take_failure(report, len(report)):
            return ""
        return f"thimble: {report.value.decode(errors='replace')}"

    def __init__(self, *arguments, **more):
        note = ""
        if arguments and str(arguments[0]).startswith("RESOURCE_EXHAUSTED"):
            note = take_note()
        if note and not hasattr(self, "add_note"):
            arguments, note = (f"{arguments[0]}\n{note}", *arguments[1:]), ""
        original(self, *arguments, **more)
        if note:
            self.add_note(note)

    error_class.__init__ = __init__


def attach(xla_client):
    """Puts the front between JAX and the driver, if the front can serve."""
    original = xla_client.generate_pjrt_gpu_plugin_options
    front = None
    try:
        check_version()
        if wants_gpu():
            check_copies()
            front = load_front()
    except Refused as reason:
        say_unused(reason)
    started = False

    def generate_pjrt_gpu_plugin_options():
        nonlocal front, started
        if os.environ.get(VARIABLE, "").lower() != "thimble":
            return original()
        if front is not None and wants_gpu():
            options = with_allocator("cuda_async", original)
            try:
                chosen = client_options()
                check_allocator(chosen.get("allocator"))
                if not started:
                    start(front, {**options, **numbers(chosen)})
                    explain_failures(front, xla_client.XlaRuntimeError)
                    started = True
                return front_options(front, options)
            except Refused as reason:
                say_unused(reason)
                front = None
        return with_allocator("default", original)

    xla_client.generate_pjrt_gpu_plugin_options = generate_pjrt_gpu_plugin_options


class Hook(importlib.abc.MetaPathFinder):
    """Attaches when JAX imports the module that makes the plugin's options."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname != HOOKED:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            attach(module)

        spec.loader.exec_module = exec_module
        return spec


def activate():
    if os.environ.get(VARIABLE, "").lower() != "thimble":
        return
    if HOOKED in sys.modules:
        attach(sys.modules[HOOKED])
    else:
        sys.meta_path.insert(0, Hook())


activate()
