# diagnosis: waits for each of them
def add_up(numbers):
    """The sum of the numbers, added up on the server, and their squares in order."""
    with strategy.scope():
        total = tf.Variable(0.0)
    noise = tf.random.normal([200, 200])

    def busy(number):
        """The number again, after some milliseconds."""
        product = noise + number
        for _ in range(8):
            product = tf.linalg.matmul(product, noise) / 200.0
        return number + 0.0 * tf.reduce_sum(product)

    @tf.function
    def step(number):
        total.assign_add(busy(number))
        return number * number

    squares = []
    for number in numbers:
        squares.append(coordinator.schedule(step, args=(tf.constant(number, tf.float32),)).fetch())
    return total.numpy(), squares


total, squares = add_up([float(number) for number in range(100)])
print("total:", total, "(should be 4950.0)   squares:", squares[:4])
