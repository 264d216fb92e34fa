def make_versions_plan(*a):
    raise NotImplementedError
