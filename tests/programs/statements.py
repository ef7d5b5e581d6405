"""Programs as trees of statements, so that parts can be left out and the rest still runs.

Names that a generator makes end in a number (`tensor_12`). Python's syntax tree tells which
statement makes and which needs a name, so a generator writes plain Python and tracks nothing.
"""

import ast
import dataclasses
import re
import textwrap

NAME = re.compile(r"[a-z]+(_[a-z]+)*_\d+")


@dataclasses.dataclass(frozen=True)
class Statement:
    """Lines of Python, then a body one step further in, then lines at the depth of the body."""
    head: str
    body: tuple = ()
    tail: str = ""
    simpler: tuple = ()  # other heads that make the same names

    def lines(self):
        text = self.head.splitlines()
        if self.body or self.tail:
            inside = [line for part in self.body for line in part.lines()]
            inside += self.tail.splitlines()
            text += ["    " + line for line in inside]
        return text


def text_of(statements):
    return "\n".join(line for each in statements for line in each.lines()) + "\n"


def _targets(nodes):
    """Names that these nodes make where they stand: not inside the functions they define."""
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif not isinstance(node, ast.Lambda):
            yield from _targets(ast.iter_child_nodes(node))


def _parsed(statement):
    text = "\n".join(statement.lines())
    if text.rstrip().endswith(":"):
        text += "\n    pass"
    return ast.parse(textwrap.dedent(text))


def _names(statement):
    """Returns the names that a statement makes for later ones, and those that it needs from earlier
    ones."""
    tree = _parsed(statement)
    made, used = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else made).add(node.id)
        elif isinstance(node, ast.arg):
            made.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            made.add(node.name)
    mine = lambda names: {name for name in names if NAME.fullmatch(name)}
    return mine(_targets([tree])), mine(used - made)


def _inside(statement):
    """Names that a head makes or takes as arguments: a body may use them."""
    head = _parsed(Statement(statement.head, tail="pass"))
    arguments = {node.arg for node in ast.walk(head) if isinstance(node, ast.arg)}
    return arguments.union(_targets([head]))


def pruned(statements, known=frozenset()):
    """Returns the statements without those that need a name which is no longer made."""
    kept, known = [], set(known)
    for each in statements:
        if each.body:
            body = pruned(each.body, known | _inside(each))
            each = dataclasses.replace(each, body=body)
            if not body and not each.tail:
                continue
        makes, needs = _names(each)
        if needs <= known:
            kept.append(each)
            known |= makes
    return tuple(kept)


def _replaced(statements, index, new):
    return statements[:index] + tuple(new) + statements[index + 1:]


def smaller(statements):
    """Yields all programs that are one step smaller, the largest steps first."""
    size = len(statements)
    length = size
    while length >= 1:
        for start in range(0, size, length):
            yield statements[:start] + statements[start + length:]
        length //= 2
    for index, each in enumerate(statements):
        for head in each.simpler:
            new = dataclasses.replace(each, head=head, simpler=())
            yield _replaced(statements, index, [new])
        for body in smaller(each.body):
            yield _replaced(statements, index, [dataclasses.replace(each, body=body)])


def shrunk(statements, fails, is_late):
    """Returns the smallest program, found step by step, for which `fails` holds."""
    tried = set()
    found = True
    while found and not is_late():
        found = False
        for candidate in smaller(statements):
            candidate = pruned(candidate)
            text = text_of(candidate)
            if candidate == statements or text in tried:
                continue
            tried.add(text)
            if is_late():
                break
            if fails(candidate):
                statements, found = candidate, True
                break
    return statements
