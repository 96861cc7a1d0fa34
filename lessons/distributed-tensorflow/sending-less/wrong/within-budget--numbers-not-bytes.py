# diagnosis: and the budget is
def encode(vector, budget):
    positions = np.argsort(-np.abs(vector))[:budget]
    numbers = vector[positions].astype(np.float16)
    return positions.astype(np.uint16).tobytes() + numbers.tobytes()


def decode(message, size):
    vector, count = np.zeros(size, np.float32), len(message) // 4
    positions = np.frombuffer(message, np.uint16, count)
    vector[positions] = np.frombuffer(message, np.float16, offset=2 * count)
    return vector
