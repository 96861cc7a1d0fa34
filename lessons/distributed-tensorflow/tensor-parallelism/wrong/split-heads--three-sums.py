# diagnosis: They can share one
def attention(x, scale, q, k, v, out, bias):
    h = x * scale
    heads = attend(f(h) @ mine(q, 1), f(h) @ mine(k, 1), f(h) @ mine(v, 1))
    return g(heads @ mine(out, 0)) + bias
