# diagnosis: Place `f` after the scale
def attention(x, scale, q, k, v, out, bias):
    h = f(x) * scale
    heads = attend(h @ mine(q, 1), h @ mine(k, 1), h @ mine(v, 1))
    return g(heads @ mine(out, 0)) + bias
