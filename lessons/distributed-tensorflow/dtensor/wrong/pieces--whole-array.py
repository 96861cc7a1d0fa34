# diagnosis: has the whole array here
def pieces(array, names, mesh):
    return [array for position in np.ndindex(*dict(mesh).values())]
