# diagnosis: Each of them divides
def held(variables, rules, mesh):
    total = 0
    for path, shape in variables:
        axes = rules.get(path, [])
        if path not in rules:
            for pattern in rules:
                if re.fullmatch(pattern, path):
                    axes = rules[pattern]
        total += math.prod(shape) // next((mesh[name] for name in axes if name), 1)
    return total
