"""Networks of Keras with random weights, exported by tf2onnx."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import keras
import numpy as np
import onnx
import tensorflow as tf
import tf2onnx
from keras import layers

EXPORTS = {}


def export(make):
    """Registers a maker: it returns a Keras model of one input."""
    EXPORTS[make.__name__] = make
    return make


def application(name, size=64, **more):
    def make():
        return getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3), classes=20, **more)
    make.__name__ = f"keras_{name.lower()}"
    export(make)


for _name, _how in (("MobileNet", {"alpha": 0.25}), ("MobileNetV2", {"alpha": 0.35}), ("MobileNetV3Small", {"include_preprocessing": False}),
                    ("EfficientNetB0", {}), ("EfficientNetV2B0", {"include_preprocessing": False}), ("ResNet50V2", {}), ("DenseNet121", {}),
                    ("NASNetMobile", {}), ("Xception", {"size": 72})):
    application(_name, **_how)


@export
def keras_lstm():
    x = keras.Input((20,), dtype="int32")
    y = layers.Embedding(200, 32)(x)
    y = layers.LSTM(48, return_sequences=True)(y)
    y = layers.LSTM(48)(y)
    return keras.Model(x, layers.Dense(10, activation="softmax")(y))


@export
def keras_gru():
    x = keras.Input((24, 16))
    y = layers.Bidirectional(layers.GRU(40, return_sequences=True))(x)
    y = layers.Bidirectional(layers.GRU(40))(y)
    return keras.Model(x, layers.Dense(10)(y))


@export
def keras_unet():
    x = keras.Input((48, 48, 3))
    one = layers.Conv2D(16, 3, padding="same", activation="relu")(x)
    two = layers.Conv2D(32, 3, strides=2, padding="same", activation="relu")(one)
    three = layers.Conv2D(64, 3, strides=2, padding="same", activation="relu")(two)
    y = layers.Conv2DTranspose(32, 3, strides=2, padding="same", activation="relu")(three)
    y = layers.Conv2D(32, 3, padding="same", activation="relu")(layers.Concatenate()([y, two]))
    y = layers.UpSampling2D(interpolation="bilinear")(y)
    y = layers.Conv2D(16, 3, padding="same", activation="relu")(layers.Concatenate()([y, one]))
    return keras.Model(x, layers.Conv2D(4, 1)(y))


@export
def keras_attention():
    x = y = keras.Input((16, 64))
    for _ in range(2):
        z = layers.LayerNormalization()(y)
        y = layers.Add()([y, layers.MultiHeadAttention(4, 16)(z, z)])
        z = layers.Dense(160, activation=lambda t: keras.activations.gelu(t, approximate=True))(layers.LayerNormalization()(y))
        y = layers.Add()([y, layers.Dense(64)(z)])
    return keras.Model(x, layers.Dense(12)(layers.GlobalAveragePooling1D()(y)))


@export
def keras_wave():
    x = keras.Input((1024, 1))
    y = layers.Conv1D(24, 16, strides=4, padding="causal", activation="swish")(x)
    for rate in (1, 2, 4):
        z = layers.Conv1D(24, 3, padding="causal", dilation_rate=rate, activation="swish")(y)
        y = layers.Add()([y, layers.SeparableConv1D(24, 5, padding="same")(z)])
    return keras.Model(x, layers.Dense(10)(layers.GlobalMaxPooling1D()(layers.PReLU(shared_axes=[1])(y))))


@export
def keras_volume():
    x = keras.Input((12, 12, 12, 1))
    y = layers.Conv3D(16, 3, activation="relu")(x)
    y = layers.MaxPooling3D(2)(y)
    y = layers.BatchNormalization()(layers.Conv3D(32, 3)(y))
    return keras.Model(x, layers.Dense(8)(layers.Flatten()(layers.LeakyReLU()(y))))


def samples(rng, count, form, whole):
    if whole:
        return rng.integers(0, 200, (count, *form)).astype(np.int32)
    x, ones = rng.standard_normal((count, *form)), [1] * len(form)
    x = x + np.roll(x, 1, -2) + np.roll(x, 2, -2)
    return (x * rng.uniform(0.3, 0.8, (count, *ones)) + 0.3 * rng.standard_normal((count, *ones))).astype(np.float32)


def settle(model, data):
    """Statistics of normalisation as training would have left them, of the samples themselves."""
    norms = [part for part in model.layers if isinstance(part, layers.BatchNormalization)]
    for part in norms:
        part.momentum = 0.0
    if norms:
        model(data, training=True)


def drop_unread(path):
    """Constants of normalization layers stay inputs, which nothing reads after the exporter's folding."""
    model = onnx.load(path)
    kept = [i for i in model.graph.input if any(i.name in node.input for node in model.graph.node)]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    onnx.save(model, path)


def write(name, path, count, seed):
    """Writes the model; its samples, {input: [sample][...]}."""
    keras.utils.set_random_seed(1000 * seed + sum(ord(c) * (i + 1) for i, c in enumerate(name)))
    model = EXPORTS[name]()
    whole = "int" in str(model.inputs[0].dtype)
    form = model.inputs[0].shape[1:]
    data = samples(np.random.default_rng(len(name)), count, form, whole)
    settle(model, data)
    wanted = [tf.TensorSpec((1, *form), tf.int32 if whole else tf.float32, name="x")]
    run = tf.function(lambda x: model(x, training=False), input_signature=wanted)
    tf2onnx.convert.from_function(run, input_signature=wanted, opset=17, output_path=str(path))
    drop_unread(path)
    return {"x": data}
