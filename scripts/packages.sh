# Read by scripts/test and scripts/demo: installs what the build needs from the distribution's packages.

build_packages='gcc libc6-dev meson ninja-build pkg-config protobuf-c-compiler libprotobuf-c-dev zlib1g-dev
    libjpeg-dev libpng-dev libwebp-dev libarchive-dev libjansson-dev libutf8proc-dev libpcre2-dev'
test_packages='libcmocka-dev libsimde-dev mandoc valgrind zsh fish curl parallel openmpi-bin python3 python3-venv'
# These start services where there is systemd.
slurm_packages='munge slurmctld slurmd slurm-client'
browser_packages='chromium-headless-shell'
deb_packages='debhelper dh-python dpkg-dev'
# The static libraries that a wheel brings with it.
wheel_packages='binutils dpkg-dev python3 python3-venv libjpeg62-turbo-dev libutf8proc-dev libpcre2-dev libbz2-dev liblzma-dev libzstd-dev liblz4-dev'
cross_packages='gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user'

say() {
    printf '%s: %s\n' "$(basename "$0")" "$*"
}

# install_packages NAME...: installs those that are missing, and says so.
install_packages() {
    if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
        say "this is not Debian or Ubuntu: going on with what is installed (needed: $*)"
        return 0
    fi
    missing=
    for p in "$@"; do
        dpkg-query -W -f '${Status}' "$p" 2> /dev/null | grep -q 'ok installed' || missing="$missing $p"
    done
    [ -n "$missing" ] || return 0
    root=
    if [ "$(id -u)" != 0 ]; then
        if ! command -v sudo > /dev/null; then
            say "missing packages, and no sudo to install them:$missing"
            return 0
        fi
        root='sudo'
    fi
    say "installing with apt-get:$missing"
    # shellcheck disable=SC2086
    $root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing > build-apt.log 2>&1 && rm -f build-apt.log && return 0
    $root apt-get update > build-apt.log 2>&1 || true
    # shellcheck disable=SC2086
    if $root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing >> build-apt.log 2>&1; then
        rm -f build-apt.log
    else
        say 'apt-get failed; going on with what is installed. Its last lines (all in build-apt.log):'
        tail -n 5 build-apt.log
    fi
}

# configure FOLDER [MESON OPTION...]: a build that is there is configured again, with its options: packages may have come since, and
# meson remembers what it did not find.
configure() {
    if [ -f "$1/build.ninja" ] && meson configure --clearcache "$1" && meson setup --reconfigure "$1"; then
        return 0
    fi
    if [ -f "$1/build.ninja" ]; then
        meson setup --wipe "$@"
    else
        meson setup "$@"
    fi
}

# say_absent LOG: what the end of meson's setup says that the build goes on without.
say_absent() {
    sed -n 's/.*WARNING: \(not found: .*\)/\1/p' "$1" | while read -r lost; do say "$lost"; done
}

# build_in FOLDER [MESON OPTION...]: configures and builds, all or the targets that $targets names.
build_in() {
    dir=$1
    shift
    configure "$dir" "$@" > "$dir.log" 2>&1 || { cat "$dir.log"; return 1; }
    say_absent "$dir.log"
    # shellcheck disable=SC2086
    ninja -C "$dir" ${targets-} > "$dir.log" 2>&1 || { tail -n 60 "$dir.log"; say "the build in $dir failed (all in $dir.log)"; return 1; }
    rm -f "$dir.log"
}

# test_in FOLDER [MESON OPTION...]: runs tests there, each on one CPU unless $cpus is 'all'.
test_in() {
    dir=$1 slots=$(mktemp -d)
    shift
    [ "${cpus-}" = all ] || set -- "$@" --wrapper "'$PWD/tests/tools/one_cpu' '$slots'"
    meson test -C "$dir" --no-rebuild --print-errorlogs "$@" || true
    for log in "$dir"/meson-logs/testlog-one_cpu.*; do # meson names them after the wrapper
        [ ! -f "$log" ] || mv "$log" "$dir/meson-logs/testlog.${log##*.}"
    done
    rm -rf "$slots"
}

# The first file named $2 under $1/tools.
tool_in() {
    find "$1/tools" -type f -name "$2" -perm -100 2> /dev/null | head -n 1
}
