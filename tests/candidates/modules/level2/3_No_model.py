def get_inputs():
    return []
