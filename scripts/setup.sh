# Sourced by the scripts beside it: makes .venv/ from a pinned requirement file.
# Usage: . scripts/setup.sh REQUIREMENTS_FILE PYTHON_EXTRA

say() { printf '==> %s\n' "$*" >&2; }
fail() { printf 'error: %s\n' "$*" >&2; exit 4; }

missing_packages() {
    command -v git >/dev/null 2>&1 || printf ' git'
    command -v bwrap >/dev/null 2>&1 || printf ' bubblewrap'
    if ! command -v python3 >/dev/null 2>&1 || [ ! -x /usr/bin/python3 ]; then printf ' python3'; fi
    python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || printf ' python3-venv'
}

missing_test_packages() {
    ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || printf ' postgresql'
    command -v node >/dev/null 2>&1 || printf ' nodejs'
    command -v npm >/dev/null 2>&1 || printf ' npm'
    command -v podman >/dev/null 2>&1 || printf ' podman'
    command -v runc >/dev/null 2>&1 || printf ' runc'
    command -v debootstrap >/dev/null 2>&1 || printf ' debootstrap'
    command -v redis-server >/dev/null 2>&1 || printf ' redis-server'
    [ -x /usr/sbin/rabbitmq-server ] || printf ' rabbitmq-server'
    command -v chromium-headless-shell >/dev/null 2>&1 ||
        command -v chromium >/dev/null 2>&1 || printf ' chromium-headless-shell'
}

install_packages() { install_missing missing_packages; }
install_test_packages() { install_missing missing_test_packages; }

install_missing() {
    packages=$($1)
    [ -n "$packages" ] || return 0
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
        fail "missing:$packages. Install with: sudo apt-get install -y$packages"
    fi
    say "installing$packages"
    # shellcheck disable=SC2086 # the list is meant to be split
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
        --no-install-recommends $packages; } >/dev/null || fail "apt-get could not install$packages"
    packages=$($1)
    [ -z "$packages" ] || fail "still missing after apt-get:$packages"
}

make_environment() {
    requirements=$1
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        fail "python3 is $(python3 -V 2>&1); Turnout needs 3.11 or newer"
    stamp=.venv/.installed
    wanted=$(cat requirements/*.txt pyproject.toml | cksum)" $requirements"
    if [ -x .venv/bin/turnout ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then return 0; fi
    # What a development environment holds is more than what running needs.
    if [ -x .venv/bin/turnout ] && [ "$requirements" = runtime ] &&
        [ "$(cat "$stamp" 2>/dev/null)" = "${wanted% runtime} dev" ]; then return 0; fi
    say "making .venv/ with $(python3 -V) (once, a few minutes)"
    [ -x .venv/bin/python ] || python3 -m venv .venv || fail "python3 -m venv failed"
    .venv/bin/python -m pip install -q --disable-pip-version-check --require-hashes \
        -r "requirements/$requirements.txt" || fail "pip could not install requirements/$requirements.txt"
    .venv/bin/python -m pip install -q --disable-pip-version-check --no-deps \
        --no-build-isolation -e . || fail "pip could not install the checkout itself"
    printf '%s' "$wanted" >"$stamp"
}
