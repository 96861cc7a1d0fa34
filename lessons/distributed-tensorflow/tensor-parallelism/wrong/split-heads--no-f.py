# diagnosis: Where is `f`?
def attention(x, scale, q, k, v, out, bias):
    h = x * scale
    heads = attend(h @ mine(q, 1), h @ mine(k, 1), h @ mine(v, 1))
    return g(heads @ mine(out, 0)) + bias
