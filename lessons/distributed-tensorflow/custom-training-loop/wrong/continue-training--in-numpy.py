# diagnosis: Save the state with a tf.train.Checkpoint
def take_steps(state, features, targets, rate, steps):
    """SGD with momentum, without TensorFlow."""
    inputs = np.hstack([features, np.ones((len(features), 1))])
    weights, speed = state
    for _ in range(steps):
        speed = 0.9 * speed - rate * 2 * inputs.T @ (inputs @ weights - targets) / len(targets)
        weights = weights + speed
    return weights, speed


def begin(folder, features, targets, rate, steps):
    """Keeps the state in a file of its own."""
    state = take_steps((np.zeros(features.shape[1] + 1),) * 2, features, targets, rate, steps)
    tf.io.gfile.makedirs(folder)
    np.save(folder + "/state.npy", np.stack(state))
    return [state[0][:-1, None], state[0][-1:]]


def go_on(folder, features, targets, rate, steps):
    """Reads the state from there."""
    weights, _ = take_steps(np.load(folder + "/state.npy"), features, targets, rate, steps)
    return [weights[:-1, None], weights[-1:]]
