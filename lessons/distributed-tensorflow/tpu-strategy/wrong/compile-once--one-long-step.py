# diagnosis: one step with each rate
def take_steps(step, rates):
    """Call `step` with each of the rates. rates: Python numbers"""
    left = 1.0
    for rate in rates:
        left *= 1 - rate
    step(tf.constant(1 - left, tf.float32))


print(*descend(1.0, [0.5, 0.25, 0.125]), "should be [0.5, 0.375, 0.328125] 1")
