"""Changes the core in small ways, one at a time, and counts how many the tests notice."""

import argparse
import hashlib
import os
import pathlib
import sys

from tests.quality import sample
from tests.quality import suite
from tests.quality import trial
from tests.quality import verdicts


def arguments():
    parser = argparse.ArgumentParser(prog="./dev mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=50, metavar="N",
                        help="mutants in all (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="S",
                        help="another number gives other mutants (%(default)s)")
    parser.add_argument("--only", choices=sample.FOLDERS, help="mutants of one folder")
    parser.add_argument("--jobs", type=int, metavar="N", help="processes of Bazel at a time")
    parser.add_argument("--fresh", action="store_true", help="forget what is known already")
    return parser.parse_args()


def kept(root):
    """The folder in which the copy of this tree, its outputs and the results are kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    name = hashlib.sha256(str(root).encode()).hexdigest()[:12]
    folder = pathlib.Path(cache) / "thimble-mutants" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def tried(root, folder, wanted, seed, attempt):
    """The rows of the first `wanted` mutants of a folder that compile."""
    rows = []
    for mutant in sample.ordered(root, folder, seed):
        if len(rows) == wanted:
            break
        row = attempt(mutant)
        if row["outcome"] != verdicts.NOT_BUILT:
            rows.append(row)
    return rows


def main():
    options = arguments()
    folder = kept(suite.ROOT)
    path = folder / "results.jsonl"
    if options.fresh:
        path.unlink(missing_ok=True)
    results = verdicts.Results(path)
    tree = trial.Tree(suite.ROOT, folder)
    trials = None

    def attempt(mutant):
        nonlocal trials
        row = results.of(mutant, tree)
        if row is None:
            trials = trials or trial.Trials(tree, folder, options.jobs)
            suite.say(f"{mutant.path}:{mutant.line}: {mutant.before}  ->  {mutant.after}")
            row = results.add(mutant, tree, *trials.run(mutant, results.killer(mutant)))
            suite.say(f"  {row['outcome']} {row['by'] or ''}")
        return row

    rows = []
    folders = (options.only,) if options.only else sample.FOLDERS
    for name, wanted in sample.shares(options.count, folders).items():
        rows += tried(tree.path, name, wanted, options.seed, attempt)
    if trials:
        trials.close()

    explained = verdicts.explanations()
    stale = [f"no longer true: {text}" for text in verdicts.stale(tree.path, explained, rows)]
    print(*verdicts.survivors(rows, explained), *stale, *verdicts.table(rows), sep="\n")
    return 0 if verdicts.is_well(rows, explained) and not stale else 1


if __name__ == "__main__":
    sys.exit(main())
