# diagnosis: Every step has the first rate
def take_steps(step, rates):
    """Call `step` with each of the rates. rates: Python numbers"""
    for _ in rates:
        step(tf.constant(rates[0], tf.float32))


print(*descend(1.0, [0.5, 0.25, 0.125]), "should be [0.5, 0.375, 0.328125] 1")
