"""Random programs for TensorFlow and Keras, each from a seed."""

import random

from tests.programs import hazards
from tests.programs import keras_parts
from tests.programs import tensor_ops
from tests.programs.prelude import prelude
from tests.programs.statements import Statement
from tests.programs.statements import text_of

# Features of programs and their frequencies. Those in WAITING meet known, unrepaired defects, so
# only `--features` enables them.
TEMPLATES = {
    "exceptions": (hazards.EXCEPTIONS, 2),
    "views": (hazards.VIEWS, 3),
    "checkpoints": (hazards.CHECKPOINTS, 2),
    "threads": (hazards.THREADS, 2),
    "oom": (hazards.OUT_OF_MEMORY, 2),
    "oom_xla": (hazards.OUT_OF_MEMORY_IN_XLA, 2),
    "forks": (hazards.FORKS, 2),
    "large": (hazards.LARGE, 1),
}
FEATURES = ("functions", "training", "keras", "onednn", *TEMPLATES)
WAITING = ()
DEFAULT = tuple(name for name in FEATURES if name not in WAITING)

SHAPES = ((7, 33), (64, 64), (256, 256), (300, 500), (512, 512), (1024, 512))


class Generator:
    """Writes one program. `tensors` and `variables` list what is alive and may be used."""

    def __init__(self, seed, features=DEFAULT):
        self.random = random.Random(seed)
        self.seed = seed
        self.features = features
        self.count = 0
        self.shape = self.random.choice(SHAPES)
        self.tensors, self.variables, self.statements = [], [], []

    # --- Pieces -----------------------------------------------------------------------------------

    def name(self, kind):
        self.count += 1
        return f"{kind}_{self.count}"

    def values(self, **more):
        """Chooses new values for the names in templates."""
        pick = self.random.choice
        return dict(n=self.random.randint(0, 3), s=self.random.randint(0, 99),
                    kind=self.random.random() < 0.3, **more,
                    **({"v": pick(self.variables)} if self.variables else {}))

    def add(self, *arguments, **more):
        self.statements.append(Statement(*arguments, **more))

    def operation(self, live, kinds, variables=()):
        """Makes one more tensor from those that are alive."""
        name, a = self.name("tensor"), self.random.choice(live[-3:])
        values = self.values(a=a, b=self.random.choice(live))
        if variables and self.random.random() < 0.3:
            kinds = (tensor_ops.STATE,)
        text = self.random.choice(self.random.choice(kinds)).format(**values)
        live.append(name)
        return Statement(f"{name} = {text}", simpler=(f"{name} = {a}",))

    def loop(self, live, kinds):
        """A loop in the graph, by AutoGraph."""
        name, a = self.name("tensor"), live[-1]
        inside = [name]
        body = tuple(self.operation(inside, kinds) for _ in range(self.random.randint(1, 3)))
        live.append(name)
        condition = self.random.choice((
            f"for _ in tf.range({self.random.randint(1, 5)}):",
            f"for _ in range({self.random.randint(1, 4)}):",
            f"if tf.reduce_sum({a}) > 0.0:"))
        return Statement(f"{name} = {a}\n{condition}", body,
                         f"{name} = {inside[-1]} * 0.5")

    def body(self, live, is_compiled, variables=(), least=2, most=8):
        kinds = (tensor_ops.PLAIN,) if is_compiled else (tensor_ops.PLAIN, tensor_ops.PLAIN,
                                                         tensor_ops.HOST)
        body = []
        for _ in range(self.random.randint(least, most)):
            if self.random.random() < 0.15:
                body.append(self.loop(live, kinds))
            else:
                body.append(self.operation(live, kinds, variables))
        return tuple(body)

    # --- Statements -------------------------------------------------------------------------------

    def start(self):
        rows, cols = self.shape
        for made in ("numbers({}, {}, seed={})", "tf.constant(numbers({}, {}, seed={})) * 0.5"):
            self.tensors.append(self.name("tensor"))
            self.add(f"{self.tensors[-1]} = tf.constant(numbers({rows}, {cols}, seed={self.count}))"
                     " * 1.0")
            self.variables.append(self.name("variable"))
            self.add(f"{self.variables[-1]} = tf.Variable({made.format(rows, cols, self.count)})")

    def eager(self):
        for _ in range(self.random.randint(1, 5)):
            self.statements.append(
                self.operation(self.tensors, (tensor_ops.PLAIN, tensor_ops.HOST), self.variables))
        self.add(f'show("eager", {self.tensors[-1]})')
        if len(self.tensors) > 6 and self.random.random() < 0.5:
            gone = self.tensors.pop(self.random.randrange(len(self.tensors) - 2))
            self.add(f"del {gone}")

    def functions(self):
        """A function of tensors, called a few times."""
        name, argument = self.name("function"), self.name("tensor")
        is_compiled = self.random.random() < 0.35
        live = [argument]
        body = self.body(live, is_compiled, self.variables)
        kept = self.random.sample(live, min(3, len(live)))
        self.add(f"@tf.function(jit_compile={is_compiled})\ndef {name}({argument}):", body,
                 f"return {', '.join(kept)}, {live[-1]}",
                 simpler=(f"def {name}({argument}):",) if not is_compiled else ())
        times, given = self.random.randint(1, 12), self.random.choice(self.tensors)
        result = self.name("tensor")
        self.add(f"{result} = {given}\nfor _ in range({times}):\n"
                 f"    {result} = tf.tanh({name}({result})[-1])\n"
                 f'    show("{name}", [{name}({given}), {", ".join(self.variables)}])')
        self.tensors.append(result)

    def training(self):
        """A step of training with a tape, by hand or by an optimizer; sometimes sparse."""
        name, argument, tape, loss = map(self.name, ("step", "tensor", "tape", "loss"))
        is_compiled = self.random.random() < 0.3
        trained = self.random.sample(self.variables, self.random.randint(1, 2))
        live = [argument]
        body = [Statement(f"{argument} = {argument} * {variable}") for variable in trained]
        if not is_compiled and self.random.random() < 0.4:
            body.append(Statement(f"{argument} = {argument} + tf.reduce_sum(tf.nn.embedding_lookup("
                                  f"{trained[0]}, [1, 3, 3, 0]), axis=0)"))
        body += self.body(live, is_compiled)
        taped = Statement(f"with tf.GradientTape() as {tape}:", tuple(body),
                          f"{loss} = tf.reduce_mean(tf.square({live[-1]}))")
        gradients, optimizer = self.name("gradients"), self.name("optimizer")
        if self.random.random() < 0.5:
            text = self.random.choice(keras_parts.OPTIMIZERS)
            self.add(f"{optimizer} = {text}\n{optimizer}.build([{', '.join(trained)}])")
            update = f"{optimizer}.apply({gradients}, [{', '.join(trained)}])"
        else:
            update = (f"for {optimizer}_v, {optimizer}_g in zip([{', '.join(trained)}], "
                      f"{gradients}):\n"
                      f"    {optimizer}_v.assign_sub(0.1 * tf.convert_to_tensor({optimizer}_g))")
        self.add(f"@tf.function(jit_compile={is_compiled})\ndef {name}({argument}):",
                 (taped,),
                 f"{gradients} = {tape}.gradient({loss}, [{', '.join(trained)}], "
                 f"unconnected_gradients='zero')\n{update}\nreturn {loss}")
        self.add(f"for _ in range({self.random.randint(2, 12)}):\n"
                 f'    show("{name}", [{name}({self.random.choice(self.tensors)}), '
                 f'{", ".join(self.variables)}])')

    def model(self):
        """A model, its training data and how it is compiled; returns their names."""
        rank = self.random.choice(tuple(keras_parts.LAYERS))
        shape = self.random.choice(keras_parts.SHAPES[rank])
        hidden = first = self.name("hidden")
        self.add(f"{first} = keras.Input({shape})")
        most = 2 if rank == "sequence" else 4  # a recurrent layer takes seconds to trace
        layers = [keras_parts.LAYERS[rank]] * self.random.randint(1, most)
        layers += [keras_parts.TO_VECTOR[rank]]
        layers += [keras_parts.LAYERS["vector"]] * self.random.randint(0, 2)
        for choices in layers:
            text = self.random.choice(choices).format(
                x=hidden, u=self.random.choice(keras_parts.UNITS[rank]), s=self.count)
            before, hidden = hidden, self.name("hidden")
            self.add(f"{hidden} = {text}", simpler=(f"{hidden} = {before}",))
        model = self.name("model")
        self.add(f"{model} = keras.Model({first}, keras.layers.Dense("
                 f"{keras_parts.CLASSES})({hidden}))")
        how = self.random.choice(("jit_compile=True", "jit_compile=False", "jit_compile=False",
                                  "run_eagerly=True"))
        if "MaxPooling" in text_of(self.statements):  # XLA has no deterministic gradient of it
            how = how.replace("True", "False")
        self.add(f"{model}.compile({self.random.choice(keras_parts.OPTIMIZERS)}, "
                 f"{keras_parts.LOSS}, {how})")
        return model, shape

    def keras(self):
        model, shape = self.model()
        count = self.random.choice((8, 20, 48))
        x, y = self.name("inputs"), self.name("labels")
        self.add(f"{x} = numbers({', '.join(map(str, (count, *shape)))}, seed={self.count})\n"
                 f"{y} = np.arange({count}) % {keras_parts.CLASSES}")
        parts = [self.fit, self.fit_data, self.fit_python, self.train_on_batch, self.interrupted,
                 self.saved, self.evaluated]
        for part in (self.random.choice(parts[:5]), self.random.choice(parts)):
            part(model, x, y, shape)
            self.add(f'show("{model}", {model}.get_weights())')

    def fit(self, model, x, y, _):
        self.add(f'show("fit", {model}.fit({x}, {y}, batch_size={self.random.choice((4, 8, 16))}, '
                 f'epochs={self.random.randint(1, 3)}, verbose=0).history["loss"])')

    def fit_data(self, model, x, y, _):
        data, text = self.name("data"), self.random.choice(keras_parts.DATASETS)
        text = text.format(x=x, y=y, b=self.random.choice((3, 8)), s=self.count)
        self.add(f'{data} = {text}\nshow("fit", {model}.fit({data}, epochs=2, verbose=0)'
                 '.history["loss"])')

    def fit_python(self, model, x, y, shape):
        self.add(f'show("fit", {model}.fit(Batches({(6, *shape)}, {keras_parts.CLASSES}), '
                 'epochs=2, verbose=0).history["loss"])')

    def train_on_batch(self, model, x, y, _):
        self.add(f"for _ in range({self.random.randint(2, 6)}):\n"
                 f'    show("batch", {model}.train_on_batch({x}[:6], {y}[:6]))')

    def interrupted(self, model, x, y, _):
        self.add(f"try:\n    {model}.fit({x}, {y}, batch_size=2, verbose=0, "
                 'callbacks=[Interrupt()])\nexcept KeyError:\n    print("interrupted", flush=True)')

    def saved(self, model, x, y, _):
        folder = self.name("folder")
        self.add(f"with tempfile.TemporaryDirectory() as {folder}:\n"
                 f'    {model}.save_weights(os.path.join({folder}, "it.weights.h5"))\n'
                 f"    {model}.train_on_batch({x}[:4], {y}[:4])\n"
                 f'    {model}.load_weights(os.path.join({folder}, "it.weights.h5"))\n'
                 f'    {model}.save(os.path.join({folder}, "it.keras"))\n'
                 f"    {folder}_copy = keras.models.load_model("
                 f"os.path.join({folder}, 'it.keras'))\n"
                 f'    show("loaded", [{folder}_copy.get_weights(), '
                 f"{folder}_copy.predict({x}, verbose=0)])")

    def evaluated(self, model, x, y, _):
        self.add(f'show("evaluate", [{model}.evaluate({x}, {y}, verbose=0, batch_size=5), '
                 f"{model}.predict({x}, verbose=0)])")

    def hazard(self, feature):
        templates, _ = TEMPLATES[feature]
        name = self.name("part")
        text = self.random.choice(templates).format(
            t=self.random.choice(self.tensors), f=name, **self.values())
        self.add(text.rstrip("\n"))

    # --- Programs ---------------------------------------------------------------------------------

    def program(self):
        self.start()
        ways = [(self.eager, 3)]
        ways += [(getattr(self, name), weight) for name, weight in
                 (("functions", 5), ("training", 4), ("keras", 3)) if name in self.features]
        ways += [(lambda name=name: self.hazard(name), weight)
                 for name, (_, weight) in TEMPLATES.items() if name in self.features]
        kinds, weights = zip(*ways)
        for _ in range(self.random.randint(1, 4)):
            self.random.choices(kinds, weights)[0]()
        self.add(f'show("end", [{", ".join(self.tensors[:2] + self.variables)}])')
        return tuple(self.statements)


def generated(seed, features=DEFAULT):
    return Generator(seed, features).program()


def source(statements, seed):
    """The program as plain Python."""
    text = text_of(statements)
    if "bounded(" in text:
        text = f"{tensor_ops.BOUNDED}\n\n{text}"
    threads = 1 if any(part in text for part in hazards.ONE_THREAD) else 1 + seed % 2
    return prelude(seed, threads, text) + text
