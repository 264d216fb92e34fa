#!/bin/sh
# Prints a Python of 3.11 or newer that can make virtual environments, or says how to get one and fails.
# The one in $PYTHON is taken if it is set.

fits='import sys; sys.exit(sys.version_info < (3, 11))'
makes='import ensurepip, venv'
old=""
bare=""

for python in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.14 python}; do
    "$python" -c '' >/dev/null 2>&1 || continue
    if ! "$python" -c "$fits"; then
        old="$old  $("$python" -c 'import sys; print(sys.executable, "is Python", sys.version.split()[0])')
"
    elif ! "$python" -c "$makes" >/dev/null 2>&1; then
        bare=$python
    else
        command -v "$python"
        exit 0
    fi
done

{
    if [ -n "$bare" ]; then
        echo "$bare cannot make virtual environments: its venv or ensurepip module is missing."
        echo "  Debian, Ubuntu:  sudo apt-get install $("$bare" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
    elif [ -n "$old" ]; then
        echo "Python is too old: beamish needs Python 3.11 or newer. Found:"
        printf '%s' "$old"
    else
        echo "Python is missing: beamish needs Python 3.11 or newer."
    fi
    if [ -z "$bare" ]; then
        echo "Get it with one of"
        echo "  Debian, Ubuntu:  sudo apt-get install python3 python3-venv   (Debian 12, Ubuntu 24.04 or newer)"
        echo "  Fedora:          sudo dnf install python3"
        echo "  macOS:           brew install python@3.13"
    fi
    echo "Then run the command again, or name one: make PYTHON=/path/to/python3 ..."
} >&2
exit 1
