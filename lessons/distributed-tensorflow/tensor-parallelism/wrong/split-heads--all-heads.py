# diagnosis: computes all heads here
def attention(x, scale, q, k, v, out, bias):
    h = x * scale
    heads = attend(h @ q, h @ k, h @ v)
    return heads @ out + bias
