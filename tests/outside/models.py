"""Other people's models from keras.applications and keras_hub, with small inputs and random
weights.

Only functions that make a model import frameworks, so that reading the names is fast.
"""

CLASSES = 10
TOKENS = 64
VOCABULARY = 2000

# Name to side of its square images: the smallest that its convolutions allow, or a little more.
# DenseNet needs more than the 256 MiB that TensorFlow's CPU device reports, so that the graph
# optimizer rewrites it to save memory.
APPLICATIONS = {
    "MobileNet": 96,
    "MobileNetV2": 96,
    "MobileNetV3Small": 96,
    "EfficientNetB0": 64,
    "EfficientNetV2B0": 64,
    "DenseNet121": 128,
    "ResNet50": 64,
    "ResNet50V2": 64,
    "VGG16": 48,
    "Xception": 96,
    "InceptionV3": 96,
    "ConvNeXtTiny": 64,
    "NASNetMobile": 64,
}

_LANGUAGE = {"vocabulary_size": VOCABULARY, "num_layers": 4, "hidden_dim": 256,
             "intermediate_dim": 1024}
_HEADS = {**_LANGUAGE, "num_heads": 4}
_GROUPED = {**_LANGUAGE, "num_query_heads": 4, "num_key_value_heads": 2}

# keras_hub backbone to its arguments.
BACKBONES = {
    "GPT2Backbone": _HEADS,
    "BertBackbone": _HEADS,
    "RobertaBackbone": _HEADS,
    "DistilBertBackbone": _HEADS,
    "AlbertBackbone": {**_HEADS, "embedding_dim": 64},
    "DebertaV3Backbone": {**_HEADS, "bucket_size": 32},
    "OPTBackbone": _HEADS,
    "T5Backbone": _HEADS,
    "BartBackbone": _HEADS,
    "BloomBackbone": _HEADS,
    "GPTNeoXBackbone": _HEADS,
    "FNetBackbone": _LANGUAGE,
    "LlamaBackbone": _GROUPED,
    "MistralBackbone": _GROUPED,
    "GemmaBackbone": {**_GROUPED, "head_dim": 64},
    "Phi3Backbone": _GROUPED,
    "MixtralBackbone": {**_GROUPED, "num_experts": 4},
    "WhisperBackbone": {**_HEADS, "max_encoder_sequence_length": 2 * TOKENS},
    "ViTBackbone": {"image_shape": (64, 64, 3), "patch_size": 8, "num_layers": 4, "num_heads": 4,
                    "hidden_dim": 256, "mlp_dim": 1024},
}
NAMES = (*APPLICATIONS, *BACKBONES)
# It computes its indices, so stock fails, too, on a GPU that computes nothing.
NEED_NUMBERS = ("MixtralBackbone",)


def make(name):
    """The model, with logits of CLASSES classes."""
    import keras
    if name in APPLICATIONS:
        side = APPLICATIONS[name]
        return getattr(keras.applications, name)(
            weights=None, classes=CLASSES, classifier_activation=None, input_shape=(side, side, 3))
    import keras_hub
    backbone = getattr(keras_hub.models, name)(**BACKBONES[name])
    outputs = backbone.output
    outputs = list(outputs.values()) if isinstance(outputs, dict) else [outputs]
    # Heads for all that it computes, so that all of it is trained.
    pooled = [keras.ops.mean(x, axis=tuple(range(1, x.ndim - 1))) if x.ndim > 2 else x
              for x in outputs]
    logits = [keras.layers.Dense(CLASSES)(x) for x in pooled]
    return keras.Model(backbone.input, logits[0] if len(logits) == 1 else keras.layers.add(logits))


def inputs(model, batch, random):
    """Arrays for the model's inputs, by their names and shapes."""
    import numpy

    def array(tensor):
        shape = (batch, *(TOKENS if size is None else size for size in tensor.shape[1:]))
        if "token_ids" in tensor.name:
            return random.integers(1, VOCABULARY, shape, "int32")
        if "mask" in tensor.name:
            return numpy.ones(shape, "int32")
        if "segment" in tensor.name:
            return random.integers(0, 2, shape, "int32")
        return random.random(shape, "float32")

    names = model.input
    if isinstance(names, dict):
        return {name: array(tensor) for name, tensor in names.items()}
    return array(names[0] if isinstance(names, list) else names)
