# diagnosis: updates got lost
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
        old = total.read_value()
        total.assign(busy(old) + number)
        return number * number

    promises = [coordinator.schedule(step, args=(tf.constant(number, tf.float32),)) for number in numbers]
    coordinator.join()
    return total.numpy(), coordinator.fetch(promises)


total, squares = add_up([float(number) for number in range(100)])
print("total:", total, "(should be 4950.0)   squares:", squares[:4])
