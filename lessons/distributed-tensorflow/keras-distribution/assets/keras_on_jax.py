import os

os.environ["KERAS_BACKEND"] = "jax"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import re
import textwrap
import warnings

import jax
import keras
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec
from keras import distribution

print("Keras", keras.__version__, "on JAX", jax.__version__)
print("devices:", *distribution.list_devices())

rng = np.random.default_rng(1)
x, y = (rng.normal(size=(32, 16)).astype("float32") for _ in range(2))
up = rng.normal(size=(16, 64)).astype("float32") / 4
down = rng.normal(size=(64, 16)).astype("float32") / 8


def build():
    model = keras.Sequential(name="mlp")
    model.add(keras.Input((16,)))
    model.add(keras.layers.Dense(64, activation="gelu", name="up"))
    model.add(keras.layers.Dense(16, name="down"))
    model.set_weights([up, np.zeros(64), down, np.zeros(16)])
    return model


mesh = distribution.DeviceMesh((2, 4), ["batch", "model"])


def model_parallel(rules):
    layout_map = distribution.LayoutMap(mesh)
    for pattern, axes in rules.items():
        layout_map[pattern] = axes
    return distribution.ModelParallel(layout_map=layout_map, batch_dim_name="batch")


columns_first = {
    ".*up/kernel": (None, "model"),
    ".*up/bias": ("model",),
    ".*down/kernel": ("model", None),
}
rows_first = {
    ".*up/kernel": ("model", None),
    ".*down/kernel": (None, "model"),
}

print("\nWhere the variables are")
distribution.set_distribution(model_parallel(columns_first))
model = build()
model.compile(keras.optimizers.Adam(), "mse")
model.fit(x, y, verbose=0)
for variable in model.variables + model.optimizer.variables[2:4]:
    shards = variable.value.addressable_shards
    print(f"{variable.path}: {shards[0].data.shape} on each of {len(shards)} devices")


def exchanged(model):
    def loss(weights, x, y):
        outputs, _ = model.stateless_call(weights, [], x)
        return ((outputs - y) ** 2).mean()

    weights = [variable.value for variable in model.trainable_variables]
    layout = distribution.distribution().get_data_layout(x.shape)
    batch = [distribution.distribute_tensor(array, layout) for array in (x, y)]
    program = jax.jit(jax.value_and_grad(loss)).lower(weights, *batch).compile().as_text()
    for shapes, name in re.findall(r" = (.*) (all-[\w-]+|reduce-scatter|collective-permute)\(", program):
        sizes = [np.prod([int(n) for n in shape.split(",") if n]) for shape in re.findall(r"\w+\[([\d,]*)\]", shapes)]
        yield f"{name} of {int(sum(sizes)):,}"


print("\nThe same training, and what the devices exchange")
for title, choice in (
    ("one device", None),
    ("DataParallel", distribution.DataParallel()),
    ("columns first", model_parallel(columns_first)),
    ("rows first", model_parallel(rows_first)),
):
    distribution.set_distribution(choice)
    model = build()
    model.compile(keras.optimizers.SGD(1.0), "mse")
    losses = model.fit(x, y, batch_size=32, epochs=3, shuffle=False, verbose=0).history["loss"]
    print(f"{title}: losses", *(f"{loss:.4f}" for loss in losses))
    if choice:
        print("   ", ", ".join(exchanged(model)))

print("\nWithout Keras")
left = jax.device_put(x, NamedSharding(mesh.backend_mesh, PartitionSpec("batch", None)))
right = jax.device_put(up, NamedSharding(mesh.backend_mesh, PartitionSpec(None, "model")))
product = jax.jit(lambda a, b: a @ b)(left, right)
print("layout of the product:", product.sharding.spec)
print("on each device:", product.addressable_shards[0].data.shape)


def attempt(title, choice, build_first=False):
    distribution.set_distribution(None if build_first else choice)
    try:
        model = build()
        distribution.set_distribution(choice)
        model.compile("sgd", "mse")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(x[:28], y[:28], batch_size=16, verbose=0)
    except Exception as error:
        print(f"{title}: {type(error).__name__}")
        print("   ", textwrap.shorten(str(error).split("implies that array ")[-1], 66, placeholder=" ..."))
    else:
        print(f"{title}: no error, first kernel", model.layers[0].kernel.value.sharding.spec)


print("\nFive mistakes")
attempt("a pattern without .*", model_parallel({"up/kernel": (None, "model")}))
attempt("two patterns for one path", model_parallel({".*kernel": (None, "model"), ".*down.*": ("model", None)}))
attempt("two axes for a bias", model_parallel({".*up.*": (None, "model")}))
attempt("12 examples left for 8 devices", distribution.DataParallel())
attempt("set_distribution after the model", model_parallel(columns_first), build_first=True)
