"""What a program does besides computing: features that can be disabled by name.

A feature is a list of templates. {t} is a tensor, {v} a variable, {f} a new name, {n} a number,
{kind} whether its functions are compiled. Each is one statement of a program.
"""

EXCEPTIONS = ('''\
@tf.function(jit_compile={kind})
def {f}(x):
    {v}.assign_add(tf.sin(x))
    return tf.reshape(x, [-1, {v}.shape[0] + 1])
try:
    {f}({t})
except (ValueError, tf.errors.InvalidArgumentError):
    show("{f}", {v})
''', '''\
@tf.function
def {f}(x, least):
    with tf.control_dependencies([tf.debugging.assert_greater(tf.reduce_max(x), least)]):
        return tf.cos(x) * {v}
for {f}_least in (1e9, -1e9):
    try:
        show("{f}", {f}({t}, {f}_least))
    except tf.errors.InvalidArgumentError:
        print("{f} refused", flush=True)
''', '''\
def {f}(array):
    if array[0] % 3 == 2:
        raise ValueError("in the middle")
    return array * np.float32(2)
try:
    for {f}_batch in tf.data.Dataset.from_tensor_slices(
            np.arange(8, dtype=np.float32)[:, None]).map(
                lambda x: tf.numpy_function({f}, [x], tf.float32)):
        show("{f}", {f}_batch)
except tf.errors.InvalidArgumentError:
    print("{f} failed", flush=True)
''')

VIEWS = ('''\
{f} = tf.identity({t}) + 1.0
{f}_view = {f}.numpy()
del {f}
show("{f}", [{f}_view, tf.sin({t})])
''', '''\
{f} = tf.experimental.dlpack.to_dlpack({t} * 2.0)
{f}_other = tf.experimental.dlpack.from_dlpack({f})
del {f}
show("{f}", {f}_other + {t})
''', '''\
{f} = {v}.numpy()
{v}.assign_add({t} * 0.1)
show("{f}", [{f}, {v}])
''', '''\
{f} = np.asarray(memoryview(tf.sin({t})))
{f}_other = [tf.cos({t}) for _ in range({n} + 2)]
show("{f}", [{f}, {f}_other])
''')

CHECKPOINTS = ('''\
with tempfile.TemporaryDirectory() as {f}_folder:
    {f} = tf.train.Checkpoint(value={v}).write(os.path.join({f}_folder, "saved"))
    {v}.assign(tf.sin({v}) + {t})
    show("{f} changed", {v})
    tf.train.Checkpoint(value={v}).read({f})
    show("{f} restored", {v})
''', '''\
{f} = pickle.loads(pickle.dumps([{v}.numpy(), {t}.numpy()]))
{v}.assign({f}[0] * {f}[1])
show("{f}", {v})
''')

THREADS = ('''\
{f} = tf.function(lambda x: tf.reduce_sum(tf.sin(x) * tf.cos(x), axis=0), jit_compile={kind})
show("{f}", together(*(lambda i=i: [{f}({t} * float(i + k)) for k in range(4)]
                       for i in range({n} + 2))))
''', '''\
def {f}(index):
    kept = []
    for k in range(6):
        kept.append(tf.fill({t}.shape, float(index * 10 + k)) + {t})
    return [tf.reduce_sum(each) for each in kept]
show("{f}", together(*(lambda i=i: {f}(i) for i in range({n} + 2))))
''')

OUT_OF_MEMORY = ('''\
out_of_memory(lambda: tf.fill([BEYOND], 1.0))
show("{f}", tf.sin({t}))
''', '''\
def {f}():
    kept = []
    while sum(each.shape[0] for each in kept) < BEYOND:
        kept.append(tf.fill([BEYOND // 8], float(len(kept))))
out_of_memory({f})
show("{f}", tf.cos({t}) + {v})
''', '''\
@tf.function
def {f}(x, length):
    {v}.assign_add(x * 0.1)
    with tf.control_dependencies([{v}.read_value()]):
        return tf.reduce_sum(tf.fill([length], x[0, 0]))
{f}_before = {v}.numpy()
out_of_memory(lambda: {f}({t}, BEYOND))
{v}.assign({f}_before)
show("{f}", [{f}({t}, 10), {v}])
''', '''\
{f} = tf.data.Dataset.range(4).map(lambda i: tf.reduce_sum(tf.fill(
    [tf.where(i == 2, tf.constant(BEYOND, tf.int64), 100)], 1.0)))
out_of_memory(lambda: list({f}))
show("{f}", list({f}.take(2)))
''')

OUT_OF_MEMORY_IN_XLA = ('''\
@tf.function(jit_compile=True)
def {f}(x, length):
    {v}.assign_add(tf.sin(x) * 0.1)
    large = tf.sort(tf.broadcast_to(x[0, 0], [length]) + tf.range(length, dtype=tf.float32))
    return large[0] + tf.reduce_sum({v})
{v}.assign({t} * 0.5)
out_of_memory(lambda: {f}({t}, BEYOND))
{f}_kept = [tf.fill({t}.shape, float(k)) for k in range(8)]
show("{f} unharmed", [{v}, {f}_kept])
for _ in range({n} + 1):
    show("{f}", [{f}({t}, 10), {v}, tf.sin({t})])
''',)

# TensorFlow has no threads in a child, so ops that are large enough to need them hang there, in
# stock too.
FORKS = ('''\
{f}_part = tf.reshape({t}, [-1])[:512]
def {f}(who):
    kept = [tf.fill([512], float(who * 100 + k)) + {f}_part[:1] for k in range(8)]
    return [digest_of(tf.sin(each)) for each in kept]
{f}_children = [forked(lambda i=i: {f}(i + 1)) for i in range(2)]
{f}_here = {f}(9)
show("{f}", [{f}_here, [child() for child in {f}_children], {t}])
''', '''\
{f}_part = tf.Variable(tf.reshape({t}, [-1])[:512])
def {f}():
    for k in range(4):
        {f}_part.assign_add({f}_part * float(k + 1))
    return digest_of({f}_part), digest_of({v}), digest_of({t})
{v}.assign({t} * 0.5)
{f}_child = forked({f})
{v}.assign({t} * 0.25)
show("{f}", [{f}_child(), {f}_part, {v}, {t}])
''', '''\
def {f}(index):
    return digest_of(tf.sin(tf.constant(numbers(20, 30, seed=index))) + 1.0)
with multiprocessing.get_context("fork").Pool(2) as {f}_pool:
    show("{f}", {f}_pool.map({f}, range(6)))
''')

# More than the 256 MiB that TensorFlow's CPU device reports, so that its optimizer adds up tensors
# one by one, as they arrive. The first sum is exact in any order. The second is not, and shows
# whether the optimizer saw the same memory as in stock; with two threads it is not stable in stock.
LARGE = ('''\
@tf.function
def {f}(x):
    parts = [tf.round(8 * tf.sin(x)) / 8]
    for k in range(11):
        parts.append(tf.round(8 * tf.cos(parts[-1] * (0.5 + k))) / 8)
    return tf.reduce_sum(tf.add_n(parts[::-1]), axis=0)
show("{f}", {f}(tf.constant(numbers(2000, 3000 + {n}, seed={n}))))
''', '''\
@tf.function
def {f}(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = 0.0
        for k in range(11):
            total += tf.reduce_sum(tf.sin(x * (0.5 + k)) * tf.cos(x))
    return tf.reduce_sum(tape.gradient(total, x), axis=0)
show("{f}", {f}(tf.constant(numbers(2000, 3000 + {n}, seed={n}))))
''')

# Features that exclude two threads: forks, because a child lacks the threads that would compute for
# it, and sums that depend on which thread comes first.
ONE_THREAD = ("fork", "use_multiprocessing", "tape.gradient(total")
