"""Small changes to C++ that the tests should notice.

Works on lines as clang-format lays them out: a binary operator has a space on either side, which
tells it from templates, pointers and references. What is no behaviour is left alone: comments,
texts, the preprocessor, assertions, CheckInvariants(), messages, and the initial values of members,
which nearly always get another one before anybody reads them.
"""

import dataclasses
import re

_NOT_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/                       # comments
      |^[ \t]*\#(?:[^\n\\]|\\.)*                 # the preprocessor
      |R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"     # texts
      |(?<!\w)'(?:\\.|[^'\\\n])'                 # characters, but not the ' in 1'000
    """, re.DOTALL | re.MULTILINE | re.VERBOSE)
_NO_BEHAVIOUR = re.compile(
    r"\b(?:THIMBLE_D?CHECK|static_assert|absl::StrCat|absl::StrAppend|Warn)(?=\()"
    r"|\bCheckInvariants\(\) const (?=\{)")
_PAIRS = {"(": ")", "{": "}"}

# Name, what is looked for, what it becomes.
_TOKENS = [(name, re.compile(rf"(?<=\s){re.escape(a)}(?=\s|$)"), b) for name, a, b in (
    ("relation", "<", "<="), ("relation", "<=", "<"), ("relation", ">", ">="),
    ("relation", ">=", ">"), ("relation", "==", "!="), ("relation", "!=", "=="),
    ("arithmetic", "+", "-"), ("arithmetic", "-", "+"), ("arithmetic", "*", "/"),
    ("arithmetic", "/", "*"), ("arithmetic", "%", "/"), ("arithmetic", "+=", "-="),
    ("arithmetic", "-=", "+="), ("arithmetic", "<<", ">>"), ("arithmetic", ">>", "<<"),
    ("arithmetic", "&", "|"), ("arithmetic", "|", "&"),
    ("logic", "&&", "||"), ("logic", "||", "&&"))]
_TOKENS += [
    ("negation", re.compile(r"!(?=[\w(])"), ""),
    ("order", re.compile(r"\bstd::min(?=[(<])"), "std::max"),
    ("order", re.compile(r"\bstd::max(?=[(<])"), "std::min"),
    ("truth", re.compile(r"\btrue\b"), "false"),
    ("truth", re.compile(r"\bfalse\b"), "true"),
    ("jump", re.compile(r"\bcontinue(?=;)"), "break"),
    ("jump", re.compile(r"\bbreak(?=;)"), "continue"),
    ("count", re.compile(r"\+\+(?=\w)"), "--"),
    ("count", re.compile(r"--(?=\w)"), "++"),
]
_MEMBER = re.compile(
    r"\s+(?=\S)(?!const|static|inline|return|using)[\w:<>*, ]+ \w+ = [^=;()]+;\s*$")
_NUMBER = re.compile(r"(?<![\w.'])\d+(?![\w.'])")
_CONDITION = re.compile(r"\b(?:if|while) (?=\()")
_CALL = r"(?:\*?[\w:]+(?:(?:\.|->|::)\w+|\[[^\]]*\])*\(.*\))"
_ASSIGNMENT = r"(?:\*?\w+(?:(?:\.|->)\w+|\[[^\]]*\])* (?:[-+|&]?=) .*)"
_STATEMENT = re.compile(rf"(?:{_CALL}|{_ASSIGNMENT});$")
_NO_STATEMENT = re.compile(r"(?:return|case|using|typedef|delete|goto|else|public|private)\b")


@dataclasses.dataclass(frozen=True)
class Mutant:
    path: str      # from the root of the tree
    line: int      # from 1
    operator: str
    before: str    # the line without what surrounds it
    after: str
    nth: int = 0   # of lines with the same text in the file

    @property
    def key(self):
        """What stays if lines are put in elsewhere."""
        return (self.path, self.before, self.after, self.nth)


def close_of(text, begin):
    """Where the bracket at `begin` is closed, or None."""
    opening, closing, depth = text[begin], _PAIRS[text[begin]], 0
    for at in range(begin, len(text)):
        depth += (text[at] == opening) - (text[at] == closing)
        if depth == 0:
            return at
    return None


def code_of(text):
    """The text, as long as before, with blanks in place of everything that is no behaviour."""
    def blank(part):
        return re.sub(r"[^\n]", " ", part)
    text = _NOT_CODE.sub(lambda match: blank(match.group()), text)
    at = 0
    while match := _NO_BEHAVIOUR.search(text, at):
        end = close_of(text, match.end())
        at = len(text) if end is None else end + 1
        text = text[:match.start()] + blank(text[match.start():at]) + text[at:]
    return text


def _changes(code, starts_statement):
    """Yields (operator, begin, end, replacement) for a line of code."""
    for name, pattern, replacement in _TOKENS:
        if name == "count" and "for (" in code:
            continue  # only ever an endless loop or a crash
        for match in pattern.finditer(code):
            yield name, match.start(), match.end(), replacement
    for match in _NUMBER.finditer(code):
        for value in (int(match.group()) + 1, int(match.group()) - 1):
            if value >= 0:
                yield "constant", match.start(), match.end(), str(value)
    body, nothing = len(code) - len(code.lstrip()), ";"
    for match in _CONDITION.finditer(code):
        end = close_of(code, match.end())
        if end is None:
            continue
        begin = max(match.end(), code.rfind(";", match.end(), end)) + 1  # if (init; condition)
        yield "condition", begin, end, f"!({code[begin:end].strip()})"
        if code[:match.start()].strip() == "":
            body, nothing = end + 2, "{}"  # clang warns of an empty body otherwise
    statement = code[body:].rstrip()
    if (starts_statement and _STATEMENT.match(statement) and not _NO_STATEMENT.match(statement)
            and statement.count("(") == statement.count(")")):
        yield "deletion", body, body + len(statement), nothing


def mutants(path, text):
    """Every mutant of a file."""
    lines, seen, previous = text.splitlines(), {}, "{"
    for number, (line, code) in enumerate(zip(lines, code_of(text).splitlines()), start=1):
        if not code.strip() or (path.endswith(".h") and _MEMBER.match(code)):
            continue
        nth = seen[line] = seen.get(line, -1) + 1
        for name, begin, end, replacement in _changes(code, previous[-1] in "{};:)"):
            after = line[:begin] + replacement + line[end:]
            yield Mutant(path, number, name, line.strip(), after.strip(), nth)
        previous = code.rstrip()


def applied(mutant, text):
    """The text of the file with the mutant in it."""
    lines = text.splitlines(keepends=True)
    line = lines[mutant.line - 1]
    if line.strip() != mutant.before:
        raise ValueError(f"{mutant.path}:{mutant.line} is not '{mutant.before}'")
    lines[mutant.line - 1] = line.replace(mutant.before, mutant.after)
    return "".join(lines)
