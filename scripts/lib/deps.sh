# shellcheck shell=bash
# Where the dependencies lie and what their folders are called. Sourced by the scripts; CMake asks `scripts/setup
# --paths`; the C++ programs get the names from there in a generated header. So the rule is written down here only.

deps_root=$(CDPATH="" cd -P -- "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
deps_lock=$deps_root/scripts/dependencies.lock

# How the ONNX C++ library is built; a part of the name of its folder, so that a changed recipe is a new build.
# Static, because then no program needs a run path into the cache; schemas register themselves on first use, so
# nothing is lost by linking only what is referred to. @SOURCE@ is where it is unpacked: its error texts name their source
# file, and no program shall name a folder of the machine that built it.
# shellcheck disable=SC2034  # used by scripts/setup
onnx_recipe=(
  -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS=-ffile-prefix-map=@SOURCE@/=" "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG" -DCMAKE_INSTALL_LIBDIR=lib
  -DONNX_BUILD_PYTHON=OFF -DONNX_ML=ON -DONNX_USE_PROTOBUF_SHARED_LIBS=ON
  -DBUILD_SHARED_LIBS=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON
  -DPython3_EXECUTABLE=/usr/bin/python3 -DFETCHCONTENT_FULLY_DISCONNECTED=ON
)

# The folder of the dependency cache, or nothing where neither variable nor home directory tells one.
deps_dir() {
  local dir=
  if [ -n "${LAYERFARM_DEPS_DIR:-}" ]; then dir=$LAYERFARM_DEPS_DIR
  elif [ -n "${XDG_CACHE_HOME:-}" ]; then dir=$XDG_CACHE_HOME/layerfarm-deps
  elif [ -n "${HOME:-}" ]; then dir=$HOME/.cache/layerfarm-deps
  fi
  case $dir in "" | /*) printf '%s\n' "$dir" ;; *) printf '%s/%s\n' "$PWD" "$dir" ;; esac
}

# Lines of one kind and group: `lock_lines pypi python`.
lock_lines() { grep -E "^$1 $2 " "$deps_lock"; }

# Version of one part: `lock_version pypi python onnxruntime`.
lock_version() { lock_lines "$1" "$2" | awk -v name="$3" '$3 == name { print $4; exit }'; }

digest() { sha256sum | cut -c "1-$1"; }

# The Python environment and the toolchains beside it are the business of toolchains.py, which is installed with the program.
toolchains=$deps_root/scripts/lib/toolchains.py
# "NAME FOLDER VERSION PACKAGE... | TEXT", one a line; nothing while Python is not installed yet.
toolchain_folders() { [ ! -x /usr/bin/python3 ] || /usr/bin/python3 -I -B "$toolchains" folders; }
part_folder() { toolchain_folders | awk -v name="$1" '$1 == name { print $2 }'; }
python_folder() { part_folder python; }
onnxruntime_folder() { printf 'onnxruntime-%s\n' "$(lock_version pypi quantize onnxruntime)"; }
testdata_folder() { printf 'onnx-testdata-%s\n' "$(lock_version pypi testdata onnx)"; }

# Depends on the compiler and protobuf of this machine: C++ libraries of another pair may not link.
onnx_folder() {
  local gcc protobuf recipe
  gcc=$(g++ -dumpfullversion 2>/dev/null) || return 1
  protobuf=$(pkg-config --modversion protobuf 2>/dev/null) || return 1
  recipe=$({ lock_lines pypi onnx-source; lock_lines pypi onnx-cmake; printf '%s\n' "${onnx_recipe[@]}"; } | digest 8)
  printf 'onnx-%s-gcc%s-protobuf%s-%s\n' "$(lock_version pypi onnx-source onnx)" "$gcc" "$protobuf" "$recipe"
}
