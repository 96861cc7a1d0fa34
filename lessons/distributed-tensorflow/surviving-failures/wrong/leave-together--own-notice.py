# diagnosis: Each worker leaves after its own notice
@tf.function
def anyone(warned):
    """True on every worker if `warned`, a tensor of type bool, is True on at least one of them."""
    return warned


me = cluster.cluster_resolver.task_id
made = train_until_warned(9, warned_before=[9, 6, 8][me])
print(f"worker {me} leaves after step {made} (should be 5 on all)")
