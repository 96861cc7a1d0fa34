# diagnosis: has to be counted
def held(variables, rules, mesh):
    total = 0
    for path, shape in variables:
        axes = rules.get(path, [])
        if path not in rules:
            for pattern in rules:
                if re.fullmatch(pattern, path):
                    axes = rules[pattern]
        total += math.prod(shape) // math.prod(mesh[name] for name in axes if name) if axes else 0
    return total
