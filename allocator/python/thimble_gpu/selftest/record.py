"""machine.json: what `thimble selftest` found, for people, for an issue, and as the prices of
`thimble swap`, `thimble topology` and `thimble harmony`. The only place that reads and writes it.

    {"format": 1, "made": "2026-11-19T21:00:00Z", "thimble": "0.2.0", "driver": "580.65.06",
     "cuda": 13000, "linux": "6.1.0", "simulated": false,
     "gpus": [{"number", "name", "address", "bytes", "granularity", "attributes",
               "verdicts": [{"check", "status", "text"}],
               "calls_us": {"cuMemCreate": {"median", "most"}},
               "bus": {"in_bytes_per_second", "out_bytes_per_second", "in_latency_ns", ...}}]}

A file of the simulated GPU has verdicts, but no prices of a GPU: nobody plans with it.
"""

import collections
import json
import os

from thimble_gpu import files

FORMAT = 1
_BUS = ("in_bytes_per_second", "out_bytes_per_second", "in_latency_ns", "out_latency_ns")


class Unusable(Exception):
    """There is no such file, or it cannot be used; the text is one line with a remedy."""


def default_path():
    """Where the last run of this user on this machine is kept."""
    folder = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(folder):
        folder = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(folder, "thimble", "machine.json")


def prepare(path):
    """Raises the OSError that write() would raise, before any work."""
    if path == default_path():
        os.makedirs(os.path.dirname(path), exist_ok=True)
    files.check(path)


def write(record, path):
    with files.replacing(path) as file:
        json.dump(record, file, indent=1)
        file.write("\n")


def read(path=None):
    """The record in the file. Raises Unusable."""
    path = default_path() if path is None else path
    try:
        with open(path, encoding="utf-8") as file:
            record = json.load(file)
        if record["format"] != FORMAT:
            raise ValueError(f"its format is {record['format']!r}, not {FORMAT}")
        count(record)
        for key in ("made", "driver", "simulated"):
            record[key]  # pylint: disable=pointless-statement
        for gpu in record["gpus"]:
            gpu["name"], gpu["address"]  # pylint: disable=pointless-statement
        return record
    except FileNotFoundError:
        raise Unusable(f"there is no {path}: run `thimble selftest` on this machine") from None
    except OSError as error:
        raise Unusable(f"{path} cannot be read: {error.strerror}") from None
    except KeyError as error:
        raise Unusable(f"{path} has no {error}: run `thimble selftest` again") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise Unusable(f"{path} is not what `thimble selftest` writes: {error}: run it again"
                      ) from None


def prices():
    """The record of the last run, if it has the prices of GPUs. Raises Unusable."""
    record = read()
    if record["simulated"]:
        raise Unusable(f"{default_path()} is of the simulated GPU, whose prices are not a GPU's: "
                       "run `thimble selftest` on a GPU")
    for gpu in record["gpus"]:
        for price in _BUS:
            value = gpu.get("bus", {}).get(price)
            if not isinstance(value, (int, float)) or not 0 < value < 1e15:
                raise Unusable(f"{default_path()}: {price} of GPU {gpu.get('number')} is {value!r}:"
                               " run `thimble selftest` again")
    return record


def bus():
    """The measured bus of the first GPU as `thimble swap --bus` takes it. Raises Unusable."""
    found = prices()["gpus"][0]["bus"]
    return "/".join(f"{number:.6g}" for number in (
        found["out_bytes_per_second"] / 1e9, found["in_bytes_per_second"] / 1e9,
        found["out_latency_ns"] / 1e3, found["in_latency_ns"] / 1e3))


def links():
    """Measured bytes per second, of the slower direction, by the address of the GPU; empty without
    a record that has prices."""
    try:
        return {gpu["address"]: min(gpu["bus"]["in_bytes_per_second"],
                                    gpu["bus"]["out_bytes_per_second"])
                for gpu in prices()["gpus"]}
    except Unusable:
        return {}


def count(record):
    """How many verdicts there are of each status."""
    return collections.Counter(verdict["status"] for gpu in record["gpus"]
                               for verdict in gpu["verdicts"])


def summary(record):
    """"23 ok, 2 lost" of a record: what its verdicts are."""
    return ", ".join(f"{number} {status}" for status, number in sorted(count(record).items()))
