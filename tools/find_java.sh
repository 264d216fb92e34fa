#!/bin/sh
# Prints the home of a Java that Spark 4 runs on (17, 21 or newer), or says how to get one and fails.

oldest=17

major() { # of the java program $1: 8 for "1.8.0_402", 17 for "17.0.15"; empty if it does not run
    "$1" -version 2>&1 | sed -n 's/.* version "\(1\.\)\{0,1\}\([0-9][0-9]*\).*/\2/p' | head -n 1
}

home() { # of the java program $1, links resolved by Java itself
    "$1" -XshowSettings:properties -version 2>&1 | sed -n 's/^ *java\.home = //p' | head -n 1
}

seen=""
look() { # at the java program $1, which was found as $2
    [ -x "$1" ] || return 0
    version=$(major "$1")
    if [ -n "$version" ] && [ "$version" -ge "$oldest" ]; then
        home "$1"
        exit 0
    fi
    seen="$seen  $2: $1 is Java ${version:-that does not run}
"
}

if [ -n "${JAVA_HOME:-}" ]; then look "$JAVA_HOME/bin/java" "JAVA_HOME"; fi
if command -v java >/dev/null 2>&1; then look "$(command -v java)" "PATH"; fi
# Not the Java in use; one that fits may be installed beside it.
for version in 21 17; do
    for place in ${JAVA_PLACES-/usr/lib/jvm /opt/homebrew/opt /usr/local/opt /Library/Java/JavaVirtualMachines}; do
        for found in "$place"/*"$version"*; do
            look "$found/bin/java" "installed"
            look "$found/Contents/Home/bin/java" "installed"
        done
    done
done

{
    if [ -n "$seen" ]; then
        echo "Java is too old: Spark 4 needs Java 17 or 21. Found:"
        printf '%s' "$seen"
    else
        echo "Java is missing: Spark 4 needs Java 17 or 21."
    fi
    echo "Get it with one of"
    echo "  Debian, Ubuntu:  sudo apt-get install openjdk-17-jre-headless   (or openjdk-21-jre-headless)"
    echo "  Fedora:          sudo dnf install java-21-openjdk-headless"
    echo "  macOS:           brew install openjdk@21"
    echo "  conda:           conda install -c conda-forge openjdk=21"
    echo "or unpack a JDK 17 or 21 anywhere and set JAVA_HOME to its folder. Then run the command again."
} >&2
exit 1
