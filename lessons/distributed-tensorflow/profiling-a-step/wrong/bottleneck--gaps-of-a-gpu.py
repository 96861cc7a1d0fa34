# diagnosis: and the answer is “device”
def bottleneck(events):
    begin = max(event.end for event in events if event.step == 0)
    later = [event for event in events if event.end > begin]
    totals = dict.fromkeys(CAUSES.values(), 0)
    moments = sorted({begin} | {max(event.start, begin) for event in later} | {event.end for event in later})
    for start, end in zip(moments, moments[1:]):
        running = {event.line: event.name for event in later if event.start <= start < event.end}
        if "GPU 0" in running:
            totals["device"] += end - start
        elif "network 0" in running:
            totals["communication"] += end - start
        elif running.get("host") == "next":
            totals["input"] += end - start
        else:
            totals["host"] += end - start
    return max(totals, key=totals.get)
