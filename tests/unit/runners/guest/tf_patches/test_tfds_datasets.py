"""Code that calls ``tfds.load`` gets the catalog's data sets without a network, and a clear error for all others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.runners.datasets.conftest import Learn, Tiny

pytestmark = pytest.mark.slow

SETUP = """
        from runners.guest.tf_patches import tfds_datasets
        tfds_datasets.install(cache)
        told["early"] = "tensorflow_datasets" in sys.modules
        os.environ["TFDS_DATA_DIR"] = str(cache / "tfds")
        import tensorflow_datasets as tfds
"""


def test_a_data_set_of_the_catalog_loads_with_its_splits_slices_and_info(tmp_path: Path, learner: Learn) -> None:
    told = learner(
        SETUP
        + """
        def load():
            return tfds.load("mnist", with_info=True, as_supervised=True)
        told["line"], (sets, info) = output(load)
        told["sizes"] = {name: part.num_examples for name, part in info.splits.items()}
        told["classes"] = info.features["label"].num_classes
        told["spec"] = [str(spec.dtype.name) + str(spec.shape) for spec in sets["train"].element_spec]
        told["again"], parts = output(lambda: tfds.load("mnist", split=["train[:25%]", "train[75%:]+test"]))
        told["parts"] = [int(part.cardinality()) for part in parts]
        arrays, _ = tf.keras.datasets.mnist.load_data()
        first = next(iter(tfds.as_numpy(parts[1])))
        told["same"] = bool((first["image"][..., 0] == arrays[0][45000]).all() and first["label"] == arrays[1][45000])
        builder = tfds.builder("mnist")
        told["ready"] = builder.is_prepared()
        context = tf.distribute.InputContext(2, 1, 2)
        shard = builder.as_dataset(split="test", read_config=tfds.ReadConfig(input_context=context, add_tfds_id=True))
        told["shard"] = [int(shard.cardinality()), next(iter(shard))["tfds_id"].numpy().decode()]
        only = tfds.decode.PartialDecoding({"label": True})
        told["only"] = sorted(builder.as_dataset(split="test", decoders=only).element_spec)
        raw = builder.as_dataset(split="test", decoders={"image": tfds.decode.SkipDecoding()})
        told["raw"] = next(iter(raw))["image"].numpy()[1:4].decode()
        whole = tfds.load("mnist", split="test", batch_size=-1)
        told["whole"] = list(whole["image"].shape)
        """,
        tmp_path,
    )
    assert told.pop("line").startswith("Stand-in data: MNIST is not in this node's cache, so these are made-up")
    assert told == {
        "threads": 0,
        "early": False,
        "sizes": {"train": 60000, "test": 10000},
        "classes": 10,
        "spec": ["uint8(28, 28, 1)", "int64()"],
        "again": "",
        "parts": [15000, 25000],
        "same": True,
        "ready": True,
        "shard": [5000, "mnist-test.tfrecord-00000-of-00001__1"],
        "only": ["label"],
        "raw": "PNG",
        "whole": [10000, 28, 28, 1],
    }


def test_reviews_are_text_files_hold_real_images_and_a_network_is_refused(
    tmp_path: Path, learner: Learn, tiny: Tiny
) -> None:
    tiny.put(tmp_path / "fashion_mnist")
    (tmp_path / "tiny.json").write_text(tiny.data_set.model_dump_json())
    told = learner(
        SETUP
        + """
        told["line"], reviews = output(lambda: tfds.load("imdb_reviews", split="train", as_supervised=True))
        text, label = next(iter(reviews))
        told["review"] = [text.dtype.name, text.numpy().decode().startswith("word"), int(label), len(reviews)]
        _, (images, info) = output(lambda: tfds.load("cifar10", split="test", with_info=True))
        told["names"] = [sorted(images.element_spec), info.features["label"].int2str(3)]
        try:
            tfds.load("coco")
        except Exception as e:
            told["refusal"] = [type(e).__name__, str(e)]

        class Mine(tfds.core.GeneratorBasedBuilder):
            VERSION = tfds.core.Version("1.0.0")

            def _info(self):
                features = tfds.features.FeaturesDict({"x": np.int64})
                return tfds.core.DatasetInfo(builder=self, features=features)

            def _split_generators(self, manager):
                return {"train": ((n, {"x": n}) for n in range(3))}

            def _generate_examples(self):
                raise AssertionError

        own = Mine(data_dir=cache / "own")
        _, _ = output(own.download_and_prepare)
        told["own"] = sorted(int(each["x"]) for each in own.as_dataset(split="train"))

        from runners.datasets.cache import Cache
        from runners.datasets.catalog import DataSet
        tiny = DataSet.model_validate_json((cache / "tiny.json").read_bytes())
        tfds_datasets.subject.apply(tfds_datasets.Source(Cache(cache), {tiny.name: tiny}))
        parts = ["train", "test[50%:]"]
        told["real_line"], sets = output(lambda: tfds.load("fashion_mnist", split=parts, as_supervised=True))
        image, label = next(iter(tfds.as_numpy(sets[1])))
        told["real"] = [len(sets[0]), len(sets[1]), image[..., 0].tolist(), int(label)]
        """,
        tmp_path,
    )
    assert told["review"][0::2] == ["string", told["review"][2]]
    assert told["review"][3] == 25000
    assert "so they have neither capitals nor punctuation" in told["line"]
    assert told["names"] == [["id", "image", "label"], "cat"]
    assert told["refusal"] == [
        "NotInCatalog",
        "There is no network in the sandbox, so tensorflow_datasets cannot download 'coco'. "
        "You can load these: cifar10, cifar100, fashion_mnist, imdb_reviews, mnist.",
    ]
    assert told["own"] == [0, 1, 2]
    assert told["real_line"] == "", "they are no stand-in"
    assert told["real"] == [40, 10, tiny.arrays["x_test"][10].tolist(), tiny.arrays["y_test"][10]]
