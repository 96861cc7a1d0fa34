"""``tensorflow_datasets`` in the sandbox: the catalog's data sets without a network, and a clear error for all others.

TensorFlow Datasets downloads, writes record files and reads those. Here, its builders know the splits at once and read
the arrays that ``keras.datasets`` gives, from memory. Splits, slices and ``as_supervised`` remain its own code; nothing
here imports it, because that takes a second.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from runners.datasets import standins
from runners.datasets.cache import Cache
from runners.datasets.catalog import Arrays, DataSet, DataSetError, read_catalog
from runners.guest.tf_patches.keras_datasets import STAND_IN_LINE, Source, load
from runners.guest.tf_patches.registry import Subject

NAMES = {
    "cifar10": "cifar10",
    "cifar100": "cifar100",
    "fashion_mnist": "fashion_mnist",
    "imdb_reviews": "imdb",
    "mnist": "mnist",
}
"""Names in TensorFlow Datasets, and those in the catalog."""
_PARTS = ("train", "test")
_HOME = "tensorflow_datasets.core.dataset_builder"
_PACKAGED = "tensorflow_datasets."
"""The modules of all builders but a learner's own."""
_WORD_INDEX = "imdb_word_index.json"

_REBUILT_LINE = (
    "The reviews are rebuilt from the words in keras.datasets.imdb, so they have neither capitals nor punctuation. "
    "There is no split 'unsupervised'."
)

subject = Subject(
    __name__,
    when="every process",
    because="a session has no network",
    since="TensorFlow Datasets 4.9",
    test="tests/unit/runners/guest/tf_patches/test_tfds_datasets.py"
    "::test_a_data_set_of_the_catalog_loads_with_its_splits_slices_and_info",
)


class NotInCatalog(DataSetError):
    """The requested data set would have to be downloaded."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"There is no network in the sandbox, so tensorflow_datasets cannot download {name!r}. "
            f"You can load these: {', '.join(NAMES)}."
        )


def install(cache_dir: Path) -> None:
    """Load every data set in the catalog from ``cache_dir``, or as its stand-in, as ``keras_datasets.install`` does."""
    subject.apply(Source(Cache(cache_dir), read_catalog()))


def _is_known(builder: Any) -> bool:
    """Whether it is the package's own builder of a data set in the catalog; a learner's may have the same name."""
    return builder.name in NAMES and type(builder).__module__.startswith(_PACKAGED)


@subject.patch(
    f"{_HOME}:DatasetBuilder.download_and_prepare",
    relies_on=(".name", ".info", ".data_dir", ".data_path"),
    used_by=("tensorflow_datasets.core.load:_download_and_prepare_builder",),
)
def _prepare(source: Source, original: Any, self: Any, **options: Any) -> None:
    """Record the splits of a known data set where TensorFlow Datasets would have put its files."""
    if not _is_known(self):
        if type(self).__module__.startswith(_PACKAGED) and not self.data_path.exists():
            raise NotInCatalog(self.name)
        original(self, **options)
        return
    if not self.data_path.exists():
        from tensorflow_datasets.core import splits

        data_set = source.catalog[NAMES[self.name]]
        infos = [splits.SplitInfo(part, [data_set.arrays[f"x_{part}"].shape[0]], 0) for part in _PARTS]
        self.info.set_splits(splits.SplitDict(infos))
        if self.name.startswith("cifar"):  # whose builders read the names from a file
            self.info.features["label"].names = data_set.classes
        self.data_path.mkdir(parents=True, exist_ok=True)
        self.info.write_to_directory(self.data_dir)


@subject.patch(
    f"{_HOME}:FileReaderBuilder._as_dataset",
    relies_on=("(self, split, decoders, read_config, shuffle_files)",),
    used_by=(f"{_HOME}:DatasetBuilder._build_single_dataset",),
)
def _as_dataset(
    source: Source,
    original: Any,
    self: Any,
    split: Any,
    decoders: Any = None,
    read_config: Any = None,
    shuffle_files: bool = False,
) -> tf.data.Dataset:
    """The examples of a known data set, in their order; there is one file, so there are none to shuffle."""
    if not _is_known(self):
        return original(self, split, decoders, read_config, shuffle_files)
    from tensorflow_datasets.core import decode, splits
    from tensorflow_datasets.core.utils import read_config as read_config_lib

    examples = _examples(source, NAMES[self.name])
    if isinstance(decoders, decode.PartialDecoding):
        wanted = decoders.extract_features(self.info.features).keys()
        examples, decoders = {name: examples[name] for name in wanted}, decoders.decoders
    ranges = splits.AbstractSplit.from_spec(split).to_absolute(self.info.splits)
    features = {name: _slices(parts, ranges) for name, parts in examples.items()}
    read_config = read_config or read_config_lib.ReadConfig()
    if read_config.add_tfds_id:
        numbers = {part: np.arange(info.num_examples) for part, info in self.info.splits.items()}
        ids = {
            part: np.char.add(f"{self.name}-{part}.tfrecord-00000-of-00001__", n.astype(str))
            for part, n in numbers.items()
        }
        features["tfds_id"] = _slices(ids, ranges)
    dataset = tf.data.Dataset.from_tensor_slices(features)
    if isinstance(decoders, Mapping) and "image" in decoders:  # tfds.decode.SkipDecoding
        dataset = dataset.map(lambda example: {**example, "image": tf.io.encode_png(example["image"])})
    if context := read_config.input_context:
        dataset = dataset.shard(context.num_input_pipelines, context.input_pipeline_id)
    return dataset.with_options(read_config.options)


def _slices(parts: Mapping[str, Any], ranges: Sequence[Any]) -> Any:
    """The examples of several ranges of parts, in that order."""
    slices = [parts[each.splitname][each.from_ : each.to] for each in ranges]
    return slices[0] if len(slices) == 1 else np.concatenate(slices)


_read: dict[str, dict[str, dict[str, Any]]] = {}
"""What has been read in this process: by data set, feature and part."""


def _examples(source: Source, name: str) -> dict[str, dict[str, Any]]:
    if name not in _read:
        data_set = source.catalog[name]
        arrays, real = load(source.cache, data_set)
        if not real:
            print(STAND_IN_LINE.format_map(data_set.model_dump(include={"title", "name", "stand_in"})), flush=True)
        _read[name] = _reviews(source, data_set, arrays, real) if name == "imdb" else _images(arrays)
    return _read[name]


def _images(arrays: Arrays) -> dict[str, dict[str, Any]]:
    """Images with a dimension for colors, and labels of the type that TensorFlow Datasets gives."""
    images = {part: arrays[f"x_{part}"] for part in _PARTS}
    features = {"image": {part: x if x.ndim == 4 else x[..., None] for part, x in images.items()}}
    for feature, suffix in (("label", ""), ("coarse_label", "_coarse")):
        if f"y_train{suffix}" in arrays:
            features[feature] = {part: arrays[f"y_{part}{suffix}"].reshape(-1).astype(np.int64) for part in _PARTS}
    if images["train"].ndim == 4:
        features["id"] = {part: np.array([f"{part}_{n:05d}" for n in range(len(x))]) for part, x in images.items()}
    return features


def _reviews(source: Source, data_set: DataSet, arrays: Arrays, real: bool) -> dict[str, dict[str, Any]]:
    """The text of reviews, from the ranks of their words."""
    print(_REBUILT_LINE, flush=True)
    file = source.cache.folder(data_set) / _WORD_INDEX
    index = json.loads(file.read_bytes()) if real else standins.word_index()
    words = {rank: word for word, rank in index.items()}

    def text(ranks: Any) -> bytes:
        return " ".join(words[rank] for rank in ranks if rank in words).encode()

    return {
        "text": {part: np.array([text(ranks) for ranks in arrays[f"x_{part}"]], object) for part in _PARTS},
        "label": {part: arrays[f"y_{part}"].astype(np.int64) for part in _PARTS},
    }
