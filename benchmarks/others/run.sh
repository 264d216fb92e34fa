#!/bin/sh
# Other systems on B1's rows, each in an environment of its own; one that does not install is passed over.
# Usage: run.sh PYTHON [arguments of the programs, such as --rows 200000]
venv=build/bench/others-venv
python=$1
shift
[ -x "$venv/bin/python" ] || "$python" -m venv --clear "$venv" || exit 1
if "$venv/bin/python" -m pip install --quiet --disable-pip-version-check 'bytewax==0.21.*' numpy pyarrow; then
	"$venv/bin/python" benchmarks/others/bytewax_sums.py "$@"
else
	echo "skipped: Bytewax 0.21 does not install here ($("$venv/bin/python" --version), $(uname -sm)); it has wheels for Python 3.8 to 3.12"
fi
echo "skipped: Quix Streams needs a Kafka broker"
