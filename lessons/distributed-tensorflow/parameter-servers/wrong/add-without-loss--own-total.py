# diagnosis: used for judging
def add_up(numbers):
    """The total and the squares, from the coordinator alone."""
    return sum(numbers), [number * number for number in numbers]


total_of_all, squares = add_up([float(number) for number in range(100)])
print("total:", total_of_all, "(should be 4950.0)   squares:", squares[:4])
