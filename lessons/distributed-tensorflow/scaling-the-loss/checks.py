"""Checks of "Scaling the loss": what two replicas compute equals what one large batch gives."""

from __future__ import annotations

import numpy as np

from runners.checks import Graph, Work, check, close, equal, fail, untouched


def random_shares(rng, sizes):
    """Random numbers for two shares of these sizes: small ones and large ones, so that no mistake cancels out."""
    return [
        rng.uniform(low, low + 0.5, size=size).astype("float32") for low, size in zip((1.0, 3.0), sizes, strict=True)
    ]


def compare_step(work, sizes, strength=0.0):
    """Take one step with hidden examples, and compare it with that of one device."""
    untouched(work, "one_step")
    weight, rate = work.rng.uniform(1.0, 1.5), work.rng.uniform(0.5, 1.5)  # after a short step, any weight would do
    shares = random_shares(work.rng, sizes)
    whole = np.concatenate(shares)
    slopes = [2 * share * (weight * share - 1.0) for share in shares]
    mean = np.concatenate(slopes).mean()
    local_means = sum(slope.mean() for slope in slopes)
    penalty = 2 * strength * weight

    def stepped(gradient):
        return np.float32(weight - rate * gradient)

    start, *others = [np.array(number, "float32") for number in (weight, rate, strength)]
    close(
        work.graph("one_step", start, whole, sizes[0], *others).result,
        stepped(mean + penalty),
        mistakes={
            "Each replica divides by the size of its own share, so the sum is too large.": stepped(
                local_means + penalty
            ),
            "Each share counts the same, however many examples it has.": stepped(local_means / len(shares) + penalty),
            "The losses are added up, but not divided by the global batch size.": stepped(
                sum(slope.sum() for slope in slopes) + penalty
            ),
            "The loss is divided twice: by the global batch size and by the number of replicas.": stepped(
                mean / len(shares) + penalty
            ),
            "The penalty counts once for each replica.": stepped(mean + len(shares) * penalty),
            "The penalty is divided by the batch size, but it is no loss of an example.": stepped(
                mean + len(shares) * penalty / len(whole)
            ),
            "The loss leaves the penalty out.": stepped(mean),
        },
    )


@check(
    "divide-the-loss",
    "One step equals one large batch",
    xp=10,
    hints=["The gradients of the replicas are added up. By what must each replica divide, so that the sum is a mean?"],
)
def equal_shares(work: Work) -> None:
    compare_step(work, [int(work.rng.integers(3, 9))] * 2)


@check(
    "divide-the-loss",
    "Shares of different sizes",
    xp=10,
    hints=["`compute_average_loss` guesses the global batch size unless you give it."],
)
def different_shares(work: Work) -> None:
    small = int(work.rng.integers(1, 4))
    compare_step(work, [small + int(work.rng.integers(3, 9)), small])


@check(
    "divide-the-loss",
    "The penalty counts once",
    xp=10,
    hints=["Both replicas compute the same penalty, and both add it. This lesson has a function for that."],
)
def penalty_once(work: Work) -> None:
    compare_step(work, [int(work.rng.integers(3, 9))] * 2, float(work.rng.uniform(0.5, 2.0)))


@check("divide-the-loss", "The loss of one share", xp=5)
def one_share(work: Work) -> None:
    losses = work.rng.uniform(0.0, 3.0, size=int(work.rng.integers(2, 9))).astype("float32")
    global_batch = len(losses) + int(work.rng.integers(1, 9))
    close(
        work.call("loss_of", losses, np.float32(0.0), global_batch),
        losses.sum() / global_batch,
        mistakes={
            "loss_of does not use `global_batch`. Outside a strategy, as here, that is a division by the number of "
            "losses.": losses.mean()
        },
    )


def weighted_batch(work, sizes):
    """Hidden losses and weights in shares of these sizes, and the parts of the right answer."""
    losses = random_shares(work.rng, sizes)
    ranges = ((1.2, 1.4), (1.6, 1.9))  # the large losses weigh more
    weights = [work.rng.uniform(*span, size=size).astype("float32") for span, size in zip(ranges, sizes, strict=True)]
    total = np.concatenate(weights).sum()
    return losses, weights, [(w * loss).sum() / total for w, loss in zip(weights, losses, strict=True)]


def mistaken_parts(losses: list[np.ndarray], weights: list[np.ndarray]) -> dict[str, list[float]]:
    """What each replica contributes with the usual mistakes. A replica without examples contributes 0."""
    products = [w * loss for w, loss in zip(weights, losses, strict=True)]
    local = [product.sum() / max(w.sum(), 1e-9) for product, w in zip(products, weights, strict=True)]
    examples = sum(map(len, losses))
    return {
        "Each replica divides by the sum of its own weights, so the sum is too large.": local,
        "This is the mean of the replicas' weighted means: a small share counts as much as a large one.": [
            part / 2 for part in local
        ],
        "The weighted losses are divided by the number of examples, not by the sum of weights.": [
            product.sum() / examples for product in products
        ],
        "`compute_average_loss` divides by the number of examples that it guesses, not by the sum of weights.": [
            product.sum() / max(2 * len(product), 1) for product in products
        ],
    }


def parts_of(work: Work, losses: list[np.ndarray], weights: list[np.ndarray]) -> tuple[list[float], Graph]:
    """What each of the two replicas contributes, and the graph of it."""
    untouched(work, "weighted_parts")
    graph = work.graph("weighted_parts", np.concatenate(losses), np.concatenate(weights), len(losses[0]), alone=True)
    parts = graph.result
    if not isinstance(parts, list) or not all(map(is_number, parts)):
        fail("weighted_part has to return one number for each replica.")
    return [float(part) for part in parts], graph


def is_number(part: object) -> bool:
    return isinstance(part, np.ndarray | np.generic) and part.shape == () and part.dtype.kind == "f"


@check(
    "weighted-mean",
    "The parts add up to the weighted mean",
    xp=15,
    hints=[
        "What is the denominator of the formula, and can one replica compute it alone?",
        "`tf.distribute.get_replica_context().all_reduce` adds up a number over all replicas.",
    ],
)
def parts_add_up(work: Work) -> None:
    small = int(work.rng.integers(1, 4))
    losses, weights, right_parts = weighted_batch(work, [small + int(work.rng.integers(3, 9)), small])
    parts, graph = parts_of(work, losses, weights)
    close(
        sum(parts),
        sum(right_parts),
        mistakes={
            **{diagnosis: sum(mistaken) for diagnosis, mistaken in mistaken_parts(losses, weights).items()},
            "Each replica returns the whole weighted mean, and the sum holds it twice.": 2 * sum(right_parts),
        },
    )
    if not graph.collectives:
        fail("The replicas did not exchange anything: each has to ask the other for its sum of weights.")
    if np.allclose(graph.alone, parts):
        fail("The sum of weights does not come from the exchange: it changes nothing.")


@check("weighted-mean", "Each replica contributes its own examples", xp=10)
def own_part(work: Work) -> None:
    small = int(work.rng.integers(2, 6))
    losses, weights, parts = weighted_batch(work, [small, small + int(work.rng.integers(1, 5))])
    got, _ = parts_of(work, losses, weights)
    close(
        got,
        parts,
        mistakes={
            "The sum is right, but all replicas return the same: each has to return the part of its own examples.": (
                [sum(parts) / 2] * 2
            ),
            "Each replica returns the whole weighted mean.": [sum(parts)] * 2,
            **mistaken_parts(losses, weights),
        },
    )


@check("weighted-mean", "A replica without examples", xp=5, hints=["0 / 0 is not a number. Which sum is never 0?"])
def empty_share(work: Work) -> None:
    losses, weights, parts = weighted_batch(work, [int(work.rng.integers(2, 9)), 0])
    got, _ = parts_of(work, losses, weights)
    equal(bool(np.isfinite(got).all()), True, mistakes={"A replica without examples returns nan.": False})
    close(got, parts, mistakes=mistaken_parts(losses, weights))
