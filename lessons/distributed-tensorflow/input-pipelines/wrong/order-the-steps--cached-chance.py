# diagnosis: frozen by the cache
def pipeline(numbers, expensive, augment, size):
    """A data set of batches, made from the data set `numbers`."""
    return numbers.map(expensive).map(augment).cache().shuffle(10_000).batch(size)


batches, count = run_epochs(list(range(12)), 5, 2)
for epoch in batches:
    print(*[batch.round(1).tolist() for batch in epoch])
print("numbers for expensive:", count, "(should be 12)")
