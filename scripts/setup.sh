# Sourced by scripts/bench and scripts/test: installs what is missing and builds. Nothing is done twice.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }

# True when all the programs named are on the PATH.
have() { for program in "$@"; do command -v "$program" > /dev/null || return 1; done; }

# install_packages PROGRAM... -- PACKAGE...: Debian packages for programs that are missing, where that is
# allowed (root, or sudo that asks nothing); otherwise one line says what to install, and it goes on.
install_packages() {
  local programs=() sudo=()
  while [ "$1" != -- ]; do programs+=("$1"); shift; done
  shift
  have "${programs[@]}" && return 0
  [ "$(id -u)" = 0 ] || sudo=(sudo -n)
  if [ "${ARDENT_NO_INSTALL:-}" = "" ] && have apt-get && { [ "$(id -u)" = 0 ] || sudo -n true 2> /dev/null; }; then
    say "Installing $* (for ${programs[*]})"
    { "${sudo[@]}" apt-get update -qq && DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq "$@"; } \
      > /dev/null 2>&1 || true
  fi
  have "${programs[@]}" || say "Missing: ${programs[*]}. Install them with: apt-get install $*"
}

if ! have node npm || ! node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)'; then
  say "Ardent needs Node.js 20.19 or newer with npm; found: $(node --version 2> /dev/null || echo none)"
  exit 1
fi

# node_modules is current when it was installed from this very lock file.
if ! cmp -s package-lock.json node_modules/.installed-lock.json; then
  say 'Installing npm packages'
  npm ci --no-audit --no-fund --loglevel=error >&2
  cp package-lock.json node_modules/.installed-lock.json
fi
install_packages redis-server redis-benchmark redis-cli -- redis-server redis-tools

say 'Building'
npm run --silent build >&2
