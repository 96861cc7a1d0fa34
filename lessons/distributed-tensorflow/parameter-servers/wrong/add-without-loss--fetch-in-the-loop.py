# diagnosis: waits for each of them
@tf.function
def step(number):
    """Add the number to the total; return its square."""
    total.assign_add(busy(number))
    return number * number


def hand_out(numbers):
    """The squares of the numbers, in order, when all steps are done."""
    squares = []
    for number in numbers:
        squares.append(coordinator.schedule(step, args=(tf.constant(number, tf.float32),)).fetch())
    return squares


total_of_all, squares = add_up([float(number) for number in range(100)])
print("total:", total_of_all, "(should be 4950.0)   squares:", squares[:4])
