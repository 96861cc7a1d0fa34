# diagnosis: and the answer is “communication”
def bottleneck(events):
    work = [event for event in events if event.name in CAUSES]
    event, totals = max(work, key=lambda event: event.end), {}
    while event.step > 0:
        cause = CAUSES[event.name]
        totals[cause] = totals.get(cause, 0) + event.end - event.start
        before = [other for other in work if other.end == event.start]
        event = min(before, key=lambda other: other.start)
    largest = max(totals, key=totals.get)
    if largest == "device":
        computed = {}
        for event in work:
            if event.line.startswith("GPU"):
                computed[event.line] = computed.get(event.line, 0) + event.end - event.start
        if max(computed.values()) >= 1.5 * min(computed.values()):
            return "slow replica"
    return largest
