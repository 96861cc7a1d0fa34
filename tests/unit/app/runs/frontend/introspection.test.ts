import assert from "node:assert/strict";
import { test } from "node:test";

import { importsOf, knownNames } from "../../../../../app/runs/frontend/introspection";

test("the imports of other cells are taken once, and nothing else of them", () => {
  const cells = ["import tensorflow as tf\nx = 1\n    import late", "from a import b\nimport tensorflow as tf"];
  assert.equal(importsOf(cells), "import tensorflow as tf\nfrom a import b\n");
});

test("names of the lesson are offered, but not from strings and comments", () => {
  const code = "strategy = 'strangers'  # strawberry\nstr_2 = stream('it''s')";
  assert.deepEqual(knownNames("print(str", code), ["str_2", "strategy", "stream"]);
  assert.deepEqual(knownNames("stream", code), []);
});

test("after a dot, only what followed the same names is offered", () => {
  const code = "tf.data.Dataset.range(3)\ntf.data.AUTOTUNE\nmy_tf.data.no\ndata.none";
  assert.deepEqual(knownNames("x = tf.data.", code), ["AUTOTUNE", "Dataset"]);
  assert.deepEqual(knownNames("tf.data.D", code), ["Dataset"]);
  assert.deepEqual(knownNames("f().", code), []);
});

test("names that could be patterns are only names", () => {
  assert.deepEqual(knownNames("a.b.", "axb.c\na.b.d"), ["d"]);
});
