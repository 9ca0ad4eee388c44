# make deb: the packages, what is in them, and that they install and go again. As root in a root folder
# of its own, whose package database has what they depend on.
set -euo pipefail
skip() { echo "skipped because $*"; exit 77; }
fail() { echo "debian_packages: $*" >&2; exit 1; }
for tool in dpkg-deb dpkg-shlibdeps file; do command -v $tool >/dev/null || skip "there is no $tool"; done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$BUILD" && cpack -G DEB -B "$work" >"$work/log" 2>&1) || { cat "$work/log"; fail "cpack failed"; }
library=$(ls "$work"/libmixtape0_*.deb) development=$(ls "$work"/libmixtape-dev_*.deb)
tools=$(ls "$work"/mixtape-tools_*.deb)

has() {
  dpkg-deb -c "$1" | awk '{print $6}' | grep -x "\./$2" >/dev/null || fail "$(basename "$1") has no $2"
}
has "$library" 'usr/lib/.*libmixtape\.so\.0'
has "$library" usr/share/doc/libmixtape0/copyright
has "$development" usr/include/mixtape.hpp
has "$development" usr/include/mixtape/mixtape.h
has "$development" 'usr/lib/.*libmixtape\.a'
has "$development" 'usr/lib/.*libmixtape\.so'
has "$development" 'usr/lib/.*mixtape\.pc'
has "$development" usr/share/doc/mixtape/examples/01_guide.c
has "$tools" usr/bin/mixtape
has "$tools" usr/share/man/man1/mixtape.1
field() { dpkg-deb -f "$1" "$2"; }
depends() { [[ $(field "$1" Depends) == *"$2"* ]] || fail "$(basename "$1") does not depend on $2"; }
all=("$library" "$development" "$tools") names=(libmixtape0 libmixtape-dev mixtape-tools)
for plugin in "$BUILD"/plugins/mixtape_mpi_*.so; do
  [ -e "$plugin" ] || continue
  flavor=${plugin##*/mixtape_mpi_} flavor=${flavor%.so}
  package=$(ls "$work"/mixtape-"$flavor"_*.deb)
  has "$package" "usr/lib/.*mixtape/mixtape_mpi_$flavor\.so"
  depends "$package" "mixtape-tools (= $(field "$tools" Version)) | libmixtape0 (= "
  depends "$package" "lib${flavor}"
  all+=("$package") names+=("mixtape-$flavor")
done
if [ -e "$BUILD/libmixtape_fortran.a" ]; then
  fortran=$(ls "$work"/libmixtape-fortran-dev_*.deb)
  has "$fortran" usr/include/mixtape/fortran/mixtape.mod
  has "$fortran" 'usr/lib/.*libmixtape_fortran\.a'
  has "$fortran" 'usr/lib/.*mixtape-fortran\.pc'
  depends "$fortran" 'libmixtape-dev (= '
  all+=("$fortran") names+=(libmixtape-fortran-dev)
fi
depends "$library" libjansson
depends "$development" 'libmixtape0 (= '
depends "$tools" 'libc6 (>= '
for unused in libhdf5 libssl; do
  [[ $(field "$library" Depends) != *$unused* ]] || fail "libmixtape0 depends on $unused"
done
# Loaded when first needed, not linked.
for package in "$library" "$tools"; do
  for loaded in libcairo2 libcurl4; do
    name=$(basename "$package")
    [[ $(field "$package" Recommends) == *$loaded* ]] || fail "$name does not recommend $loaded"
    [[ $(field "$package" Depends) != *${loaded%[0-9]}* ]] || fail "$name depends on $loaded"
  done
done
dpkg-deb --ctrl-tarfile "$library" | tar -xO ./postinst | grep ldconfig >/dev/null ||
  fail "libmixtape0 does not call ldconfig"
[ "$(dpkg-deb -c "$library" | wc -l)" -lt 20 ] || fail "libmixtape0 has more than the library"
both=$(for package in "${all[@]}"; do
  dpkg-deb -c "$package" | awk '!/^d/ {print $6}'
done | sort | uniq -d)
[ -z "$both" ] || fail "in two packages: $both"
dpkg-deb -c "$tools" | awk '!/^d/ {print $6}' | grep -v '^\./usr/' && fail "files outside /usr"

[ "$(id -u)" = 0 ] || skip "the packages are right, and installing them needs root"
root=$work/root
mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" "$root/var/lib/dpkg/triggers"
touch "$root/var/lib/dpkg/available"
# What is installed here counts as installed there; its files are not.
cp /var/lib/dpkg/status "$root/var/lib/dpkg/status"
dpkg_there() { dpkg --root="$root" --no-triggers --force-depends,script-chrootless "$@" >>"$work/log" 2>&1; }
dpkg_there --unpack "${all[@]}" || { tail "$work/log"; fail "dpkg --unpack"; }
"$root/usr/bin/mixtape" version >/dev/null || fail "the installed program does not run"
dpkg_there --purge "${names[@]}" || { tail "$work/log"; fail "dpkg --purge"; }
left=$(find "$root/usr" ! -type d 2>/dev/null || true)
[ -z "$left" ] || fail "left after purge: $left"
[ ! -e "$root/usr/share/doc/mixtape" ] || fail "a folder is left after purge"
echo "${#all[@]} packages of $(field "$library" Version) install and go"
