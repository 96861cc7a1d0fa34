# diagnosis: No step is handed out
@tf.function
def step(number):
    """Add the number to the total; return its square."""
    return number * number


def hand_out(numbers):
    """The squares of the numbers, in order, when all steps are done."""
    total.assign(sum(numbers))
    return [number * number for number in numbers]


total_of_all, squares = add_up([float(number) for number in range(100)])
print("total:", total_of_all, "(should be 4950.0)   squares:", squares[:4])
