# Sourced by the scripts of this folder: where the repository is, how they speak, who is root.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root"

# The one line with which each script says what it does.
say() { if [ -t 1 ]; then printf '\033[1m==>\033[0m %s\n' "$*"; else echo "==> $*"; fi; }

die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# Downloads survive between runs and clones here: data sets, results of clang-tidy.
# Without a home (a service, a bare container) they are kept in the repository.
weir_cache="${WEIR_CACHE:-${XDG_CACHE_HOME:-${HOME:-$root}/.cache}/weir}"

# The presets that people name on the command line; anything else is a typing error.
check_preset() {
  case "$1" in
    dev | release | asan | tsan) ;;
    *) die "unknown preset '$1'; there are: dev release asan tsan" ;;
  esac
}
