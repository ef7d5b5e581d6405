"""Every class of keras.layers as a layer of a small model: its arguments and its inputs.

Texts are Python and use the names of keras.layers and own_layers, `Sequential` and `np`.
"""

# The inputs of a model: names of shapes.
SHAPES = {"flat": (6,), "sequence": (6, 4), "image": (8, 8, 3), "volume": (4, 4, 4, 2),
          "film": (3, 6, 6, 2), "line": (3, 6, 2), "solid": (2, 4, 4, 4, 1), "sound": (400,),
          "channel": (400, 1)}
# Inputs that cannot be differentiated: shape and type.
WHOLE = {"integer": ((1,), "int32"), "integers": ((3,), "int32"), "word": ((1,), "string"),
         "words": ((3,), "string")}

_JAX = ("JaxLayer(lambda params, inputs: inputs @ params, "
        "lambda rng, inputs: np.eye(6, 4, dtype='float32'))")

# By class: the layer and its inputs. Lists and dicts are one argument, tuples several. Cells and
# base classes are tried inside another layer, and FlaxLayer as a JaxLayer.
TRIED = {
    "Activation": ("Activation('tanh')", "flat"),
    "ActivityRegularization": ("ActivityRegularization(l1=0.1, l2=0.1)", "flat"),
    "AdaptiveAveragePooling1D": ("AdaptiveAveragePooling1D(3)", "sequence"),
    "AdaptiveAveragePooling2D": ("AdaptiveAveragePooling2D(3)", "image"),
    "AdaptiveAveragePooling3D": ("AdaptiveAveragePooling3D(2)", "volume"),
    "AdaptiveMaxPooling1D": ("AdaptiveMaxPooling1D(3)", "sequence"),
    "AdaptiveMaxPooling2D": ("AdaptiveMaxPooling2D(3)", "image"),
    "AdaptiveMaxPooling3D": ("AdaptiveMaxPooling3D(2)", "volume"),
    "Add": ("Add()", ["flat", "flat"]),
    "AdditiveAttention": ("AdditiveAttention(dropout=0.2, seed=3)", ["sequence", "sequence"]),
    "AlphaDropout": ("AlphaDropout(0.3, seed=3)", "flat"),
    "Attention": ("Attention(use_scale=True, dropout=0.2, seed=3)", ["sequence", "sequence"]),
    "AugMix": ("AugMix((0, 1), seed=3)", "image"),
    "AutoContrast": ("AutoContrast((0, 1))", "image"),
    "Average": ("Average()", ["flat", "flat"]),
    "AveragePooling1D": ("AveragePooling1D(2)", "sequence"),
    "AveragePooling2D": ("AveragePooling2D(2)", "image"),
    "AveragePooling3D": ("AveragePooling3D(2)", "volume"),
    "BatchNormalization": ("BatchNormalization()", "image"),
    "Bidirectional": ("Bidirectional(LSTM(4, recurrent_dropout=0.2, seed=3))", "sequence"),
    "CategoryEncoding": ("CategoryEncoding(8, output_mode='count')", "integers"),
    "CenterCrop": ("CenterCrop(4, 4)", "image"),
    "Concatenate": ("Concatenate()", ["flat", "flat"]),
    "ContrastLimitedAdaptiveHistogramEqualization": (
        "ContrastLimitedAdaptiveHistogramEqualization((0, 1), tile_grid_size=(2, 2))", "image"),
    "Conv1D": ("Conv1D(4, 3, padding='causal')", "sequence"),
    "Conv1DTranspose": ("Conv1DTranspose(4, 3)", "sequence"),
    "Conv2D": ("Conv2D(4, 3, kernel_regularizer='l2')", "image"),
    "Conv2DTranspose": ("Conv2DTranspose(4, 3)", "image"),
    "Conv3D": ("Conv3D(4, 3)", "volume"),
    "Conv3DTranspose": ("Conv3DTranspose(4, 3)", "volume"),
    "ConvLSTM1D": ("ConvLSTM1D(2, 3)", "line"),
    "ConvLSTM2D": ("ConvLSTM2D(2, 3)", "film"),
    "ConvLSTM3D": ("ConvLSTM3D(2, 3)", "solid"),
    "Cropping1D": ("Cropping1D(1)", "sequence"),
    "Cropping2D": ("Cropping2D(1)", "image"),
    "Cropping3D": ("Cropping3D(1)", "volume"),
    "CutMix": ("CutMix(seed=3)", {"images": "image", "labels": "flat"}),
    "Dense": ("Dense(4, activity_regularizer='l2')", "flat"),
    "DepthwiseConv1D": ("DepthwiseConv1D(3)", "sequence"),
    "DepthwiseConv2D": ("DepthwiseConv2D(3)", "image"),
    "Discretization": ("Discretization([-1.0, 0.0, 1.0])", "flat"),
    "Dot": ("Dot(axes=1)", ["flat", "flat"]),
    "Dropout": ("Dropout(0.3, seed=3)", "flat"),
    "ELU": ("ELU()", "flat"),
    "EinsumDense": ("EinsumDense('abc,cd->abd', (6, 5), bias_axes='d')", "sequence"),
    "Embedding": ("Embedding(10, 4, mask_zero=True)", "integers"),
    "Equalization": ("Equalization((0, 1))", "image"),
    "Flatten": ("Flatten()", "image"),
    "FlaxLayer": (_JAX, "flat"),
    "GRU": ("GRU(4, dropout=0.2, seed=3)", "sequence"),
    "GRUCell": ("RNN(GRUCell(4))", "sequence"),
    "GaussianDropout": ("GaussianDropout(0.3, seed=3)", "flat"),
    "GaussianNoise": ("GaussianNoise(0.3, seed=3)", "flat"),
    "GlobalAveragePooling1D": ("GlobalAveragePooling1D()", "sequence"),
    "GlobalAveragePooling2D": ("GlobalAveragePooling2D()", "image"),
    "GlobalAveragePooling3D": ("GlobalAveragePooling3D()", "volume"),
    "GlobalMaxPooling1D": ("GlobalMaxPooling1D()", "sequence"),
    "GlobalMaxPooling2D": ("GlobalMaxPooling2D()", "image"),
    "GlobalMaxPooling3D": ("GlobalMaxPooling3D()", "volume"),
    "GroupNormalization": ("GroupNormalization(2)", "sequence"),
    "GroupedQueryAttention": ("GroupQueryAttention(2, 4, 2, dropout=0.2, seed=3)",
                              ("sequence", "sequence")),
    "HashedCrossing": ("HashedCrossing(8)", ["integer", "integer"]),
    "Hashing": ("Hashing(8)", "integers"),
    "Identity": ("Identity()", "flat"),
    "InputLayer": ("Identity()", "flat"),
    "IntegerLookup": ("IntegerLookup(vocabulary=[1, 2, 3, 4])", "integers"),
    "JaxLayer": (_JAX, "flat"),
    "LSTM": ("LSTM(4, dropout=0.2, seed=3, return_sequences=True)", "sequence"),
    "LSTMCell": ("RNN(LSTMCell(4))", "sequence"),
    "Lambda": ("Lambda(lambda x: x * 2)", "flat"),
    "Layer": ("Own()", "flat"),
    "LayerNormalization": ("LayerNormalization()", "sequence"),
    "LeakyReLU": ("LeakyReLU()", "flat"),
    "Masking": ("Masking(0.0)", "sequence"),
    "MaxNumBoundingBoxes": ("MaxNumBoundingBoxes(4, bounding_box_format='xyxy')", {
        "images": "image", "bounding_boxes": {"boxes": "sequence", "labels": "flat"}}),
    "MaxPooling1D": ("MaxPooling1D(2)", "sequence"),
    "MaxPooling2D": ("MaxPooling2D(2)", "image"),
    "MaxPooling3D": ("MaxPooling3D(2)", "volume"),
    "Maximum": ("Maximum()", ["flat", "flat"]),
    "MelSpectrogram": ("MelSpectrogram(fft_length=64, sequence_stride=32, num_mel_bins=8)",
                       "sound"),
    "Minimum": ("Minimum()", ["flat", "flat"]),
    "MixUp": ("MixUp(seed=3)", {"images": "image", "labels": "flat"}),
    "MultiHeadAttention": ("MultiHeadAttention(2, 4, dropout=0.2, seed=3)",
                           ("sequence", "sequence")),
    "Multiply": ("Multiply()", ["flat", "flat"]),
    "Normalization": ("Normalization(mean=0.5, variance=2.0)", "flat"),
    "PReLU": ("PReLU()", "flat"),
    "Permute": ("Permute((2, 1))", "sequence"),
    "Pipeline": ("Pipeline([Rescaling(0.5), RandomFlip(seed=3)])", "image"),
    "RMSNormalization": ("RMSNormalization()", "sequence"),
    "RNN": ("RNN([LSTMCell(4), GRUCell(4)])", "sequence"),
    "RandAugment": ("RandAugment((0, 1), seed=3)", "image"),
    "RandomBrightness": ("RandomBrightness(0.2, (0, 1), seed=3)", "image"),
    "RandomColorDegeneration": ("RandomColorDegeneration(0.5, (0, 1), seed=3)", "image"),
    "RandomColorJitter": ("RandomColorJitter((0, 1), 0.2, 0.2, 0.2, 0.2, seed=3)", "image"),
    "RandomContrast": ("RandomContrast(0.5, (0, 1), seed=3)", "image"),
    "RandomCrop": ("Sequential([RandomCrop(4, 4, seed=3), GlobalMaxPooling2D()])", "image"),
    "RandomElasticTransform": ("RandomElasticTransform(value_range=(0, 1), seed=3)", "image"),
    "RandomErasing": ("RandomErasing(value_range=(0, 1), seed=3)", "image"),
    "RandomFlip": ("RandomFlip(seed=3)", "image"),
    "RandomGaussianBlur": ("RandomGaussianBlur(value_range=(0, 1), seed=3)", "image"),
    "RandomGrayscale": ("RandomGrayscale(0.5, seed=3)", "image"),
    "RandomHue": ("RandomHue(0.2, (0, 1), seed=3)", "image"),
    "RandomInvert": ("RandomInvert(0.5, (0, 1), seed=3)", "image"),
    "RandomPerspective": ("RandomPerspective(seed=3)", "image"),
    "RandomPosterization": ("RandomPosterization(4, (0, 1), seed=3)", "image"),
    "RandomRotation": ("RandomRotation(0.2, seed=3)", "image"),
    "RandomSaturation": ("RandomSaturation(0.5, (0, 1), seed=3)", "image"),
    "RandomSharpness": ("RandomSharpness(0.5, (0, 1), seed=3)", "image"),
    "RandomShear": ("RandomShear(0.2, 0.2, seed=3)", "image"),
    "RandomTranslation": ("RandomTranslation(0.2, 0.2, seed=3)", "image"),
    "RandomZoom": ("RandomZoom(0.2, seed=3)", "image"),
    "ReLU": ("ReLU()", "flat"),
    "RepeatVector": ("RepeatVector(3)", "flat"),
    "Rescaling": ("Rescaling(0.5, 0.1)", "flat"),
    "Reshape": ("Reshape((4, 6))", "sequence"),
    "Resizing": ("Resizing(5, 5)", "image"),
    "ReversibleEmbedding": ("ReversibleEmbedding(10, 4)", "integers"),
    "STFTSpectrogram": ("STFTSpectrogram(frame_length=32, frame_step=16, fft_length=32)",
                        "channel"),
    "SeparableConv1D": ("SeparableConv1D(4, 3)", "sequence"),
    "SeparableConv2D": ("SeparableConv2D(4, 3)", "image"),
    "SimpleRNN": ("SimpleRNN(4)", "sequence"),
    "SimpleRNNCell": ("RNN(SimpleRNNCell(4))", "sequence"),
    "Softmax": ("Softmax()", "flat"),
    "Solarization": ("Solarization(0.1, 0.5, (0, 1), seed=3)", "image"),
    "SpatialDropout1D": ("SpatialDropout1D(0.3, seed=3)", "sequence"),
    "SpatialDropout2D": ("SpatialDropout2D(0.3, seed=3)", "image"),
    "SpatialDropout3D": ("SpatialDropout3D(0.3, seed=3)", "volume"),
    "SpectralNormalization": ("SpectralNormalization(Dense(4))", "flat"),
    "StackedRNNCells": ("RNN(StackedRNNCells([LSTMCell(4), GRUCell(4)]))", "sequence"),
    "StringLookup": ("StringLookup(vocabulary=['a', 'b', 'c'])", "words"),
    "Subtract": ("Subtract()", ["flat", "flat"]),
    "TFSMLayer": ("TFSMLayer(SAVED, call_endpoint='serve')", "flat"),
    "TextVectorization": ("TextVectorization(vocabulary=['a', 'b', 'c'], output_mode='count')",
                          "word"),
    "TimeDistributed": ("TimeDistributed(BatchNormalization())", "sequence"),
    "TorchModuleWrapper": ("TorchModuleWrapper(None)", "flat"),
    "UnitNormalization": ("UnitNormalization()", "sequence"),
    "UpSampling1D": ("UpSampling1D(2)", "sequence"),
    "UpSampling2D": ("UpSampling2D(2, interpolation='bilinear')", "image"),
    "UpSampling3D": ("UpSampling3D(2)", "volume"),
    "Wrapper": ("Twice(Dense(6))", "flat"),
    "ZeroPadding1D": ("ZeroPadding1D(1)", "sequence"),
    "ZeroPadding2D": ("ZeroPadding2D(1)", "image"),
    "ZeroPadding3D": ("ZeroPadding3D(1)", "volume"),
}


def page(results):
    """The text of allocator/docs/007-harmony-layers.md."""
    lines = [_HEAD]
    for name, result in sorted(results.items()):
        tried = TRIED[name][0].replace("|", "\\|")
        lines.append(f"| {name} | `{tried}` | {_in_words(result)} |")
    return "\n".join(lines) + "\n"


def _in_words(result):
    if "keras" in result:
        return f"Keras itself cannot: {result['keras']}"
    if "refused" in result:
        return f"refused: {result['refused']}"
    return "as in Keras, with its state" if result["has_state"] else "as in Keras"


_HEAD = """# 007: the layers that Harmony trains

This page lists every class of `keras.layers` and whether Harmony trains it as Keras does.
`//tests/harmony_runner:layers_test` generates it, and fails if the page is out of date or if Keras
has a layer that is not in the table.

Each layer is tested in a small model: inputs, a layer that scales them by weights, the tested
layer, a dense layer. The test trains the model with `attach()` in packs, on two devices with at
most 16 MiB each, in microbatches of two samples. Then it trains as Keras does, with gradients
summed over the same microbatches, from the same weights, averages and seeds. Both run `evaluate()`,
three steps and `evaluate()` again.

- "As in Keras": all losses and numbers of `evaluate()` are finite and have a relative difference
  below 1e-6. Weights differ by less than 1e-6 of the largest in their variable or, if Keras itself
  changes more when weights are rounded differently, by a few such changes.
- "With its state": computing changes averages or random seeds, in this layer or with it. These also
  end as in Keras, seeds to the last bit.

| layer | tried | result |
|---|---|---|"""
