# diagnosis: not only a part of it
def held(variables, rules, mesh):
    total = 0
    for path, shape in variables:
        axes = rules.get(path, [])
        if path not in rules:
            for pattern in rules:
                if re.search(pattern, path):
                    axes = rules[pattern]
        total += math.prod(shape) // math.prod(mesh[name] for name in axes if name)
    return total
