# diagnosis: the loss is
def encode(vector, budget):
    positions = np.argsort(-np.abs(vector))[: budget // 8]
    return positions.astype(np.int32).tobytes() + vector[positions].tobytes()


def decode(message, size):
    vector, count = np.zeros(size, np.float32), len(message) // 8
    positions = np.frombuffer(message, np.int32, count)
    vector[positions] = np.frombuffer(message, np.float32, offset=4 * count)
    return vector
