# diagnosis: in another order
def pieces(array, names, mesh):
    sizes = dict(mesh[::-1])
    result = []
    for position in np.ndindex(*sizes.values()):
        at = dict(zip(sizes, position))
        piece = array
        for axis, name in enumerate(names):
            if name != WHOLE:
                piece = np.split(piece, sizes[name], axis)[at[name]]
        result.append(piece)
    return result
