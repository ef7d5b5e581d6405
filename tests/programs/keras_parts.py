"""Layers, optimizers and data of the models that a program trains.

A layer takes {x} of the rank under which it is listed, and returns the same rank.
"""

CLASSES = 10
WORDS = 50

LAYERS = {
    "image": (
        "keras.layers.Conv2D({u}, 3, padding='same', activation='relu')({x})",
        "keras.layers.Conv2D({u}, 3, padding='same', strides=2)({x})",
        "keras.layers.Conv2D({u}, 3, padding='same', dilation_rate=2, use_bias=False)({x})",
        "keras.layers.DepthwiseConv2D(3, padding='same')({x})",
        "keras.layers.SeparableConv2D({u}, 3, padding='same')({x})",
        "keras.layers.Conv2DTranspose({u}, 3, padding='same')({x})",
        "keras.layers.BatchNormalization()({x})",
        "keras.layers.LayerNormalization()({x})",
        "keras.layers.GroupNormalization(1)({x})",
        "keras.layers.MaxPooling2D(padding='same')({x})",
        "keras.layers.AveragePooling2D(2, padding='same')({x})",
        "keras.layers.ZeroPadding2D(1)({x})",
        "keras.layers.SpatialDropout2D(0.2, seed={s})({x})",
        "keras.layers.GaussianNoise(0.1, seed={s})({x})",
        "keras.layers.PReLU(shared_axes=[1, 2])({x})",
        "keras.layers.Add()([{x}, keras.layers.Conv2D({x}.shape[-1], 1)({x})])",
        "keras.layers.Concatenate()([{x}, keras.layers.Conv2D(4, 3, padding='same')({x})])",
    ),
    "sequence": (
        "keras.layers.LSTM({u}, return_sequences=True)({x})",
        "keras.layers.GRU({u}, return_sequences=True)({x})",
        "keras.layers.SimpleRNN({u}, return_sequences=True, unroll=True)({x})",
        "keras.layers.Bidirectional(keras.layers.LSTM({u}, return_sequences=True))({x})",
        "keras.layers.Conv1D({u}, 3, padding='causal', activation='relu')({x})",
        "keras.layers.MultiHeadAttention(2, 8)({x}, {x}, use_causal_mask=True)",
        "keras.layers.Add()([{x}, keras.layers.MultiHeadAttention(2, 4, dropout=0.1)({x}, {x})])",
        "keras.layers.LayerNormalization()({x})",
        "keras.layers.TimeDistributed(keras.layers.Dense({u}))({x})",
        "keras.layers.Dense({u}, activation='gelu')({x})",
        "keras.layers.Dropout(0.2, seed={s})({x})",
        "keras.layers.MaxPooling1D(padding='same')({x})",
    ),
    "vector": (
        "keras.layers.Dense({u}, activation='relu')({x})",
        "keras.layers.Dense({u}, kernel_regularizer='l2')({x})",
        "keras.layers.Dense({u}, activity_regularizer='l1')({x})",
        "keras.layers.BatchNormalization()({x})",
        "keras.layers.UnitNormalization()({x})",
        "keras.layers.Dropout(0.3, seed={s})({x})",
        "keras.layers.Activation('swish')({x})",
        "keras.layers.Concatenate()([{x}, keras.layers.Dense(8)({x})])",
        "keras.layers.Reshape((-1,))(keras.layers.RepeatVector(2)({x}))",
        "keras.ops.sin({x}) + keras.ops.mean({x}, axis=-1, keepdims=True)",
    ),
}

TO_VECTOR = {
    "image": ("keras.layers.Flatten()({x})", "keras.layers.GlobalAveragePooling2D()({x})"),
    "sequence": ("keras.layers.GlobalMaxPooling1D()({x})", "keras.layers.GRU(8)({x})"),
    "vector": ("{x}",),
}

# Of one sample.
SHAPES = {
    "image": ((16, 16, 3), (24, 20, 1), (32, 32, 3)),
    "sequence": ((6, 8), (12, 16)),
    "vector": ((20,), (257,)),
}
UNITS = {"image": (4, 8, 16), "sequence": (8, 24, 32), "vector": (16, 64, 300)}

OPTIMIZERS = (
    "keras.optimizers.SGD(0.01, momentum=0.9, nesterov=True)",
    "keras.optimizers.Adam(clipnorm=1.0)",
    "keras.optimizers.AdamW(use_ema=True)",
    "keras.optimizers.RMSprop()",
    "keras.optimizers.Adagrad()",
    "keras.optimizers.Lion(1e-4)",
    "keras.optimizers.Adafactor()",
    "keras.optimizers.Adam(gradient_accumulation_steps=2)",
    "keras.optimizers.Ftrl()",
)

LOSS = "keras.losses.SparseCategoricalCrossentropy(from_logits=True)"

# Data sets from {x} and {y}, the arrays of the whole set; {s} is a seed.
DATASETS = (
    "tf.data.Dataset.from_tensor_slices(({x}, {y})).shuffle(32, seed={s}).batch({b})",
    "tf.data.Dataset.from_tensor_slices(({x}, {y})).batch({b}).map(lambda x, y: (tf.sin(x), y),"
    " num_parallel_calls=2).prefetch(2)",
    "tf.data.Dataset.from_tensor_slices(({x}, {y})).batch({b}).map(lambda x, y: (tf.ensure_shape("
    "tf.numpy_function(np.cos, [x], tf.float32), x.shape), y)).cache()",
    "tf.data.Dataset.from_generator(lambda: iter(zip({x}, {y})), output_signature=("
    "tf.TensorSpec({x}.shape[1:], tf.float32), tf.TensorSpec((), tf.int64))).batch({b})",
    "tf.data.Dataset.range(0, {x}.shape[0], {b}).map(lambda i: (tf.constant({x})[i:i + {b}],"
    " tf.constant({y})[i:i + {b}])).repeat(2)",
)
