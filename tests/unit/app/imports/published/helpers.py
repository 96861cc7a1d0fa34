def doubled(column):
    return 2 * column
