#!/usr/bin/env bash
# Runs in the bare system of scripts/verify_package, as root: installs the package and works with it as a user does.
set -euo pipefail
: "${CHECKOUT:?}"
cd /verify

step() { printf 'verify_package: %s\n' "$*"; }
die() { printf 'verify_package: FAILED: %s\n' "$*" >&2; exit 1; }
quietly() { "$@" >log 2>&1 || { tail -n 20 log >&2; die "$*"; }; }

[ ! -e "$CHECKOUT" ] || die "the checkout is visible here"
quietly apt-get -q -y update
# From an earlier try in the same system.
dpkg -s layerfarm >/dev/null 2>&1 && quietly apt-get -q -y purge layerfarm
step "installing the package, with nothing but what it needs"
quietly apt-get -q -y install --no-install-recommends ./layerfarm.deb

# A user without any right beyond their own folder.
id user >/dev/null 2>&1 || quietly useradd --create-home user
home=$(getent passwd user | cut -d: -f6)
rm -rf "${home:?}"/* "$home/.cache"
cp "a model.onnx" "$home/"
chown -R user: "$home"
as_user() {
  setpriv --reuid user --regid user --clear-groups env -C "$home" HOME="$home" LOGNAME=user USER=user "$@"
}
# expect CODE TEXT COMMAND...: the command ends with that code and prints the text.
expect() {
  local code=$1 text=$2 got=0
  shift 2
  as_user "$@" >said 2>&1 || got=$?
  [ "$got" = "$code" ] || { cat said >&2; die "$*: exit code $got, not $code"; }
  grep -qF -- "$text" said || { cat said >&2; die "$*: it does not say: $text"; }
}

step "without any toolchain"
expect 0 "torq-gen-config" torq-gen-config --help
expect 0 "toolchains install" layerfarm chips
expect 0 "iree " layerfarm toolchains
expect 1 "layerfarm toolchains install iree" layerfarm discover --model "a model.onnx" --chip host-cpu
expect 0 "Results: " layerfarm discover --model "a model.onnx" --chip ort-cpu --workers 1 --output-dir ort

if ! command -v python3 >/dev/null; then
  expect 1 "install the Debian packages python3 and python3-venv" layerfarm toolchains install iree
  quietly apt-get -q -y install --no-install-recommends python3
  expect 1 "install the Debian package python3-venv" layerfarm toolchains install iree
fi
quietly apt-get -q -y install --no-install-recommends python3-venv ca-certificates

step "toolchains that cannot be installed: nobody at the other end, no room"
expect 1 "cannot be reached" env PIP_RETRIES=0 PIP_INDEX_URL=http://127.0.0.1:9/simple PIP_CONFIG_FILE=/dev/null layerfarm toolchains install iree
mkdir -p /verify/small
mount -t tmpfs -o size=24m,mode=777 none /verify/small
expect 1 "no room left in /verify/small" env LAYERFARM_DEPS_DIR=/verify/small layerfarm toolchains install iree
[ -z "$(find /verify/small "$home/.cache/layerfarm-deps" -mindepth 1 -maxdepth 1 -type d)" ] || die "something half made is left"
umount /verify/small

step "installing the toolchain iree"
expect 0 "iree 3" layerfarm toolchains install iree
expect 0 "there already" layerfarm toolchains install iree
[ "$(as_user layerfarm toolchains list --json | grep -c '"installed": true')" = 1 ] || die "not iree alone is installed"

step "discover, view, edit"
expect 0 "Results: " torq-gen-config discover --model "a model.onnx" --chip host-cpu --workers 1 --output-dir out
report="out/torq_gen_config_a model.json"
layer=$(as_user grep -o '"Conv_[^"]*": {' "$report" | head -n 1 | cut -d '"' -f 2)
[ -n "$layer" ] || die "no layer in $report"
as_user grep -q '"mlir_location": "[0-9]*:[0-9]*"' "$report" || die "no layer has a place in the imported module"
expect 0 "LAYER: $layer" layerfarm view "$report" "$layer"
expect 0 "Updated" layerfarm edit "$report" --layer "$layer" --executor vmvx
as_user grep -q vmvx "out/torq_gen_config_a model_compiler.json" || die "the edit is not in the compiler file"
expect 0 "comparison passed" layerfarm run --model "a model.onnx" --output-dir out

if [ -d unpacked ]; then
  step "the other package, unpacked under a name of its own"
  mv unpacked "/opt/another place"
  expect 0 "host-cpu" "/opt/another place/bin/layerfarm" chips
  expect 0 "from the store" "/opt/another place/bin/torq-gen-config" discover --model "a model.onnx" --chip host-cpu --workers 1 --output-dir out2
  rm -rf "/opt/another place"
fi

step "removing the package"
dpkg -L layerfarm | while read -r file; do [ -d "$file" ] || echo "$file"; done >files
quietly apt-get -q -y purge layerfarm
while read -r file; do [ ! -e "$file" ] || die "$file is left"; done <files
for folder in /usr/share/layerfarm /usr/lib/layerfarm /usr/share/doc/layerfarm; do [ ! -e "$folder" ] || die "$folder is left"; done
