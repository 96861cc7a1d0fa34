# diagnosis: and the budget is
def encode(vector, budget):
    length = np.abs(vector).mean(dtype=np.float32)
    return length.tobytes() + np.packbits(vector >= 0).tobytes()


def decode(message, size):
    length = np.frombuffer(message, np.float32, 1)
    bits = np.unpackbits(np.frombuffer(message, np.uint8, offset=4), count=size)
    return length * (2 * bits.astype(np.float32) - 1)
