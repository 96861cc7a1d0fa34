# diagnosis: comes first, before every pattern
def held(variables, rules, mesh):
    total = 0
    for path, shape in variables:
        axes = next((rules[pattern] for pattern in rules if re.fullmatch(pattern, path)), [])
        total += math.prod(shape) // math.prod(mesh[name] for name in axes if name)
    return total
