# diagnosis: busy with each of the numbers once
@tf.function
def step(number):
    """Add the number to the total; return its square."""
    total.assign_add(busy(number))
    return number * number


def hand_out(numbers):
    """The squares from the coordinator, and a single step with 0 for the workers."""
    promises = [coordinator.schedule(step, args=(tf.constant(0.0),))]
    coordinator.join()
    total.assign_add(sum(numbers))
    return [number * number for number in numbers] + 0 * coordinator.fetch(promises)
