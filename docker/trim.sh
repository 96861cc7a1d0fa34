#!/bin/sh
# Makes a virtual environment smaller for an image: `trim.sh FOLDER`. An image compiles nothing, runs no tests of its
# libraries and debugs no machine code, and the interface speaks three languages. Jedi needs its stubs for completion.
set -eu
packages=$(echo "$1"/lib/python3*/site-packages)
rm -rf "$packages"/tensorflow/include
find "$packages" -type d -name tests -prune -exec rm -rf {} +
find "$packages" -type f ! -path '*/jedi/*' \( -name '*.pyi' -o -name '*.pyx' -o -name '*.pxd' -o -name '*.c' -o -name '*.cpp' -o -name '*.h' \) -delete
if [ -d "$packages"/babel/locale-data ]; then
  find "$packages"/babel/locale-data -name '*.dat' ! -name 'root.dat' ! -name 'en*' ! -name 'ko*' ! -name 'zh*' -delete
fi
# Symbols that only debuggers read are a fifth of TensorFlow. Libraries that a wheel has bundled (*.libs) were edited in
# ways that `strip` cannot handle.
find "$packages" -type f -name '*.so*' -size +1M ! -path '*.libs/*' -exec strip --strip-unneeded {} +
