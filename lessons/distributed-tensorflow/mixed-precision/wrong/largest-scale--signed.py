# diagnosis: Negative gradients overflow
def largest_scale(gradients):
    """The largest power of two that keeps every gradient finite in float16. gradients: a list of NumPy arrays."""
    largest = max(float(tf.reduce_max(gradient)) for gradient in gradients)
    scale = 2.0**-60
    while 2 * scale * largest <= 65504:
        scale *= 2
    return scale


some = [np.float32([2e-8, -4e-8]), np.float32([[0.5], [-3.0]])]
scale = largest_scale(some)
for factor in (scale, 2 * scale):
    print(f"scale {factor:7.0f}:", *[tf.cast(gradient * factor, tf.float16).numpy().ravel() for gradient in some])
