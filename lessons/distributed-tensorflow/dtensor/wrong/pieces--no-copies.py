# diagnosis: Each device needs an entry
def pieces(array, names, mesh):
    sizes = {name: size for name, size in mesh if name in names}
    result = []
    for position in np.ndindex(*sizes.values()):
        at = dict(zip(sizes, position))
        piece = array
        for axis, name in enumerate(names):
            if name != WHOLE:
                piece = np.split(piece, sizes[name], axis)[at[name]]
        result.append(piece)
    return result
