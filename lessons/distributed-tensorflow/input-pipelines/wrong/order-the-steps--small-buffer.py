# diagnosis: the buffer of the shuffle is too small
def pipeline(numbers, expensive, augment, size):
    """A data set of batches, made from the data set `numbers`."""
    return numbers.map(expensive).cache().shuffle(10).map(augment).batch(size)


batches, count = run_epochs(list(range(12)), 5, 2)
for epoch in batches:
    print(*[batch.round(1).tolist() for batch in epoch])
print("numbers for expensive:", count, "(should be 12)")
