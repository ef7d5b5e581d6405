"""Runs small PTX kernels on the processor, thread after thread: enough for those of the self-test,
whose first run on a GPU must not be their first run at all. Unknown instructions are errors."""

import operator
import re

_ENTRY = re.compile(r"\.visible \.entry (\w+)\((.*?)\)\s*\{(.*?)\n\}", re.DOTALL)
_COMPARE = {"ge": operator.ge, "lt": operator.lt, "eq": operator.eq, "ne": operator.ne}
_COUNT = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul.lo": lambda a, b: a * b,
          "xor": lambda a, b: a ^ b, "mad.lo": lambda a, b, c: a * b + c,
          "mad.wide": lambda a, b, c: a * b + c, "mov": lambda a: a,
          "cvta.to.global": lambda a: a}


class Machine:
    """`memory` has 32-bit words by address. `clock` is called for %globaltimer."""

    def __init__(self, text, clock=None):
        text = re.sub(r"//.*", "", text)
        self._kernels = {name: (re.findall(r"(\w+)\s*(?:,|$)", " ".join(parameters.split())),
                                [line.strip().rstrip(";") for line in body.splitlines()
                                 if line.strip() and not line.strip().startswith(".reg")])
                         for name, parameters, body in _ENTRY.findall(text)}
        self._clock = clock
        self.memory = {}

    def launch(self, name, blocks, threads, *arguments):
        names, lines = self._kernels[name]
        assert len(names) == len(arguments), names
        for block in range(blocks):
            for thread in range(threads):
                self._run(lines, {"%ctaid.x": block, "%tid.x": thread, "%nctaid.x": blocks,
                                  "%ntid.x": threads, **dict(zip(names, arguments))})

    def _run(self, lines, values):
        at = 0
        while True:
            line, at = lines[at], at + 1
            if line.endswith(":"):
                continue
            guard = re.match(r"@(!?)(%\w+) ", line)
            if guard:
                if values[guard[2]] == bool(guard[1]):
                    continue
                line = line[guard.end():]
            operation, _, operands = line.partition(" ")
            operands = [part.strip() for part in operands.split(",")]
            if operation == "ret":
                return
            if operation == "bra":
                at = lines.index(operands[0] + ":")
            else:
                self._do(operation, operands, values)

    def _do(self, operation, operands, values):
        bits = 64 if operation.endswith("64") or ".wide." in operation else 32
        place = operands[0].strip("[]")
        values["%globaltimer"] = self._clock() if "%globaltimer" in operands else None
        given = [values[text.strip("[]")] if not text.isdigit() else int(text)
                 for text in operands[1:]]
        if operation.startswith("ld.param."):
            values[place] = given[0]
        elif operation in ("ld.global.u32", "ld.volatile.global.u32"):
            values[place] = self.memory[given[0]]
        elif operation == "st.global.u32":
            self.memory[values[place]] = given[0]
        elif operation == "red.global.add.u32":
            self.memory[values[place]] += given[0]
        elif operation.startswith("setp."):
            values[place] = _COMPARE[operation.split(".")[1]](*given)
        else:
            count = _COUNT[operation.rpartition(".")[0]]
            values[place] = count(*given) & ((1 << bits) - 1)
