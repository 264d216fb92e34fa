"""The public names of packages, which ``vars`` lacks until they are used: the names that a repr is evaluated with."""


def public_names(*packages):
    return {name: getattr(package, name) for package in packages for name in package.__all__}
