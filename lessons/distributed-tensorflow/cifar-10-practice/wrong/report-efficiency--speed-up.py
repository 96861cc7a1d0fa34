# diagnosis: as many times its rate as there are devices
import random

measured = [(devices, random.randint(300, 1000) * devices) for devices in (8, 2, 1, 4)]

for devices, rate in sorted(measured):
    print(f"{devices} devices: {rate / dict(measured)[1]:.0%}")
