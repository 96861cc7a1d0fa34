# diagnosis: set the momentum to 0.9
def make_layer():
    return tf.keras.layers.BatchNormalization(synchronized=True)


with mirrored.scope():
    layer = make_layer()
    layer.build((None, 3))
