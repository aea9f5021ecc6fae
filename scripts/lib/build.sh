# shellcheck shell=bash
# Configures and builds a preset. Sourced by the scripts after deps.sh.
: "${deps_root:?}"

# build_preset PRESET [TARGET...]: prints a line of progress on a terminal, and only failures elsewhere.
build_preset() {
  local preset=$1 start=$SECONDS folder=$deps_root/build/$1 log
  shift
  # Afterwards the build configures itself again when a file of CMake's or the lock changed.
  if [ ! -e "$folder/build.ninja" ]; then
    mkdir -p "$folder"
    log=$folder/configure.log
    printf 'build: configuring %s\n' "$preset"
    (cd "$deps_root" && cmake --preset "$preset") >"$log" 2>&1 || { tail -n 30 "$log" >&2; return 1; }
  fi
  local command=(cmake --build --preset "$preset")
  [ $# = 0 ] || command+=(--target "$@")
  [ -t 1 ] || command+=(-- --quiet)
  printf 'build: %s (the first time takes minutes)\n' "$preset"
  (cd "$deps_root" && "${command[@]}") || return 1
  printf 'build: %s done in %d s\n' "$preset" $((SECONDS - start))
}
