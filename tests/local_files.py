"""Local files of Spark without a program started for each: Hadoop runs ``chmod`` for every file that it makes.

Some thirty per batch; and one that was ended from elsewhere ends the query. Tests need no permissions of files.
"""

WITHOUT_PERMISSIONS = """
package beamish.tests;

import java.lang.reflect.Method;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

public class WithoutPermissions extends RawLocalFileSystem {
    public void setPermission(Path path, FsPermission permission) {}

    public static void use(Configuration conf) throws Exception {
        URI root = URI.create("file:///");
        FileSystem local = new LocalFileSystem(new WithoutPermissions());
        local.initialize(root, conf);
        Class[] takes = new Class[] {URI.class, Configuration.class, FileSystem.class};
        Method add = FileSystem.class.getDeclaredMethod("addFileSystemForTesting", takes);
        add.setAccessible(true);
        add.invoke(null, new Object[] {root, conf, local});
    }
}
"""


def set_no_permissions(spark):
    """From now on, in the JVM of this session."""
    compiler = spark._jvm.org.codehaus.janino.SimpleCompiler()  # Spark's own
    compiler.cook(WITHOUT_PERMISSIONS)
    made = compiler.getClassLoader().loadClass("beamish.tests.WithoutPermissions")
    [use] = [method for method in made.getDeclaredMethods() if method.getName() == "use"]
    given = spark._sc._gateway.new_array(spark._jvm.java.lang.Object, 1)
    given[0] = spark._jsc.hadoopConfiguration()
    use.invoke(None, given)
