# diagnosis: has to be handed out to a worker
@tf.function
def step(number):
    """Add the number to the total; return its square."""
    total.assign_add(busy(number))
    return number * number


def hand_out(numbers):
    """All steps on the coordinator, and one on a worker that changes nothing."""
    nothing = coordinator.schedule(tf.function(lambda: 0.0))
    squares = [step(tf.constant(number, tf.float32)).numpy() for number in numbers]
    coordinator.join()
    return [square + nothing.fetch() for square in squares]
