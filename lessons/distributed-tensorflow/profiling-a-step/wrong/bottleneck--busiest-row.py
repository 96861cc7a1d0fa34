# diagnosis: the answer is “
def bottleneck(events):
    busy = {}
    for event in events:
        if event.step > 0 and event.name in CAUSES:
            busy[event.line] = busy.get(event.line, 0) + event.end - event.start
    busiest = max(busy, key=busy.get)
    causes = {"input": "input", "host": "host", "GPU": "device", "network": "communication"}
    return causes[busiest.split()[0]]
