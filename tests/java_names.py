"""Names of Java's packages and classes are looked up once.

For each part of ``spark._jvm.org.apache.spark.X`` py4j asks the JVM, which looks through all jars before it takes one for a package.
"""

from py4j.java_gateway import JavaClass, JavaPackage, JVMView  # type: ignore[import-untyped]


def remember_names():
    """From now on, in this process."""
    for of in (JVMView, JavaPackage):
        if not hasattr(of.__getattr__, "asks"):
            of.__getattr__ = _remembering(of.__getattr__)


def _remembering(asks):
    def ask_once(self, name):
        found = asks(self, name)
        if isinstance(found, (JavaClass, JavaPackage)):
            vars(self)[name] = found  # found without this function next time
        return found

    ask_once.asks = asks
    return ask_once
