# diagnosis: not only its beginning
def held(variables, rules, mesh):
    total = 0
    for path, shape in variables:
        axes = rules.get(path, [])
        if path not in rules:
            for pattern in rules:
                if re.match(pattern, path):
                    axes = rules[pattern]
        total += math.prod(shape) // math.prod(mesh[name] for name in axes if name)
    return total
