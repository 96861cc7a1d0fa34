# diagnosis: and the answer is “device”
def bottleneck(events):
    work = [event for event in events if event.name in CAUSES]
    event, totals = max(work, key=lambda event: event.end), {}
    while event.step > 0:
        cause = CAUSES[event.name]
        totals[cause] = totals.get(cause, 0) + event.end - event.start
        before = [other for other in work if other.end == event.start]
        event = max(before, key=lambda other: other.start)
    largest = max(totals, key=totals.get)
    return largest
