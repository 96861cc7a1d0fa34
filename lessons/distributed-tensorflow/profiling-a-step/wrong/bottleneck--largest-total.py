# diagnosis: and the answer is “device”
def bottleneck(events):
    totals = {}
    for event in events:
        if event.step > 0 and event.name in CAUSES:
            cause = CAUSES[event.name]
            totals[cause] = totals.get(cause, 0) + event.end - event.start
    return max(totals, key=totals.get)
