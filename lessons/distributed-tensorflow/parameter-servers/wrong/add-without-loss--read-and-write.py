# diagnosis: updates got lost
@tf.function
def step(number):
    """Add the number to the total; return its square."""
    old = total.read_value()
    total.assign(busy(old) + number)
    return number * number


def hand_out(numbers):
    """The squares of the numbers, in order, when all steps are done."""
    promises = [coordinator.schedule(step, args=(tf.constant(number, tf.float32),)) for number in numbers]
    coordinator.join()
    return coordinator.fetch(promises)


total_of_all, squares = add_up([float(number) for number in range(100)])
print("total:", total_of_all, "(should be 4950.0)   squares:", squares[:4])
