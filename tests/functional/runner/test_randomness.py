"""Random numbers: every kernel comes from the same warm process, but none repeats another's."""

from __future__ import annotations

import asyncio
import json

import pytest

from runners.wire.client import RunnerClient
from runners.wire.protocol import KerasVersion
from tests.factories.real_supervisor import SessionClient

DRAW = """
import json, random, secrets, tempfile, uuid
import numpy as np, tensorflow as tf
drawn = {
    'random': random.random(), 'secrets': secrets.token_hex(8), 'tempfile': tempfile.mktemp(),
    'uuid1': str(uuid.uuid1()), 'uuid4': str(uuid.uuid4()),
    'numpy, old': float(np.random.rand()), 'numpy': float(np.random.default_rng().random()),
    'tensorflow, eager': str(tf.random.uniform((4,)).numpy()),  # one of 2**23 numbers each
    'tensorflow, in a graph': str(tf.function(lambda: tf.random.normal((4,)))().numpy()),
    'tensorflow, generator': str(tf.random.get_global_generator().normal((4,)).numpy()),
    'tensorflow, new generator': str(tf.random.Generator.from_non_deterministic_state().normal((4,)).numpy()),
    'tensorflow, shuffle': str(list(tf.data.Dataset.range(99).shuffle(99).as_numpy_iterator())),
}
layer = tf.keras.layers.Dense(4)
layer(tf.ones((1, 1)))
drawn['keras, layer'] = str(np.array(layer.kernel))
drawn['keras, dropout'] = str(tf.keras.layers.Dropout(0.5)(tf.ones(64), training=True).numpy().tolist())
drawn['keras, initializer'] = str(np.array(tf.keras.initializers.GlorotUniform()((4,))))
print(json.dumps(drawn))
"""


@pytest.mark.parametrize("keras", [3, pytest.param(2, marks=pytest.mark.long)])
async def test_no_two_sessions_and_no_two_starts_draw_the_same(client: RunnerClient, keras: KerasVersion) -> None:
    learners = [SessionClient(client, keras=keras) for _ in range(2)]
    drawn = []
    for learner in learners:
        for _ in range(2):
            told = await learner.run(DRAW)
            drawn.append(json.loads(told.stdout))
            await client.restart(learner.session)
    await asyncio.gather(*(learner.leave() for learner in learners))
    repeated = [source for source in drawn[0] if len({str(d[source]) for d in drawn}) < len(drawn)]
    assert repeated == []
