# diagnosis: Along the other dimensions of the mesh
def held(variables, rules, mesh):
    total = 0
    for path, shape in variables:
        axes = rules.get(path, [])
        if path not in rules:
            for pattern in rules:
                if re.fullmatch(pattern, path):
                    axes = rules[pattern]
        total += math.prod(shape) // (math.prod(mesh.values()) if any(axes) else 1)
    return total
