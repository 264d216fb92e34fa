def make_as_of_plan(*a):
    raise NotImplementedError
