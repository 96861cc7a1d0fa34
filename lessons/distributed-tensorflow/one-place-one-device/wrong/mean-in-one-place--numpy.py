# diagnosis: used for judging
def feature_means(pixels, batch):
    """The mean of each feature over all examples, and how many there were, without any replica."""
    return pixels.mean(axis=0, dtype="float32"), len(pixels)


pictures = tf.constant([[200, 0, 90]] * 5 + [[100, 60, 90]] * 5, tf.uint8).numpy()
print(*feature_means(pictures, batch=8), "should be [150. 30. 90.] 10")
