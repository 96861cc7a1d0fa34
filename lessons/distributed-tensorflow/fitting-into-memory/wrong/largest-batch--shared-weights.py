# diagnosis: every device pays for its own
def largest_batch(memory, weights, slots, activations, activation_bytes, replicas):
    """The largest global batch, a whole number."""
    fixed = 4 * weights * (2 + slots)
    return max(0, (replicas * memory - fixed) // (activation_bytes * activations))


network = dict(weights=189_000, slots=2, activations=350_000)
print("float32:", largest_batch(2**30, activation_bytes=4, replicas=2, **network), "should be 1528")
print("float16:", largest_batch(2**30, activation_bytes=2, replicas=2, **network), "should be 3058")
