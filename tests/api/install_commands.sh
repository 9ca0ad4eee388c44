# scripts/install and scripts/uninstall: what is installed, that all of it goes and nothing else, that the
# project of `mixtape new` builds with it, and that a program links with the static library by what pkg-config
# says.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "install_commands: $*" >&2; exit 1; }
installed=$work/root/opt/mix
cd "$PROJECT"
for command in install uninstall; do
  for destination in '' /; do
    ! scripts/$command "$BUILD" "$PROJECT/." "$destination" 2>"$work/log" ||
      fail "$command takes the folder of the sources"
    grep 'folder of the sources' "$work/log" >/dev/null || fail "the refusal says: $(cat "$work/log")"
  done
done
mkdir -p "$installed/share/doc"
echo mine >"$installed/share/doc/other"
scripts/install "$BUILD" /opt/mix "$work/root" >"$work/log"
for file in bin/mixtape include/mixtape/mixtape.h include/mixtape.hpp lib*/libmixtape.a lib*/libmixtape.so.0 \
  lib*/pkgconfig/mixtape.pc share/doc/mixtape/LICENSE share/doc/mixtape/README.md \
  share/doc/mixtape/docs/NUMERICS.md share/doc/mixtape/docs/manual/README.md \
  share/doc/mixtape/examples/01_guide.c share/doc/mixtape/examples/01_guide.cpp \
  share/man/man1/mixtape-train.1 \
  share/bash-completion/completions/mixtape share/zsh/site-functions/_mixtape \
  share/fish/vendor_completions.d/mixtape.fish; do
  ls "$installed"/$file >/dev/null || fail "no $file"
done
if [ -e "$BUILD/libmixtape_fortran.a" ]; then
  for file in include/mixtape/fortran/mixtape.mod lib*/libmixtape_fortran.a \
    lib*/pkgconfig/mixtape-fortran.pc share/doc/mixtape/examples/17_fortran.f90; do
    ls "$installed"/$file >/dev/null || fail "no $file"
  done
fi
tools/check_links "$installed/share/doc/mixtape" >"$work/links" || fail "$(cat "$work/links")"
version=$(pkg-config --modversion "$installed"/lib*/pkgconfig/mixtape.pc)
"$installed/bin/mixtape" version | grep -x "mixtape $version" >/dev/null ||
  fail "the program and pkg-config have different versions"

# What `mixtape new` writes builds against it and passes its test, by make and by CMake.
export PKG_CONFIG_PATH=$(dirname "$installed"/lib*/pkgconfig/mixtape.pc)
"$installed/bin/mixtape" new "$work/my_net/" >"$work/log"
make -C "$work/my_net" CFLAGS='-O2 -Wall -Wextra -Wpedantic -Werror' all test >"$work/log" 2>&1 ||
  fail "mixtape new, make: $(cat "$work/log")"
(cd "$work/my_net/build" && ./my_net >"$work/log" 2>&1) || fail "mixtape new, program: $(cat "$work/log")"
grep 'test accuracy: ' "$work/log" >/dev/null || fail "mixtape new: its program says $(cat "$work/log")"
"$installed/bin/mixtape" evaluate --model "$work/my_net/build/my_net.keras" --data digits >/dev/null 2>&1 ||
  fail "mixtape new: its program's model cannot be read"
{ cmake -S "$work/my_net" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$installed" \
  -DCMAKE_C_FLAGS='-Wall -Wextra -Wpedantic -Werror' && cmake --build "$work/cmake" &&
  ctest --test-dir "$work/cmake" --no-tests=error --output-on-failure; } >"$work/log" 2>&1 ||
  fail "mixtape new, CMake: $(cat "$work/log")"

# Without the shared library the linker takes the static one.
rm "$installed"/lib*/libmixtape.so*
cc tests/api/consumer/consumer.c -o "$work/program" $(pkg-config --static --cflags --libs mixtape) ||
  fail "pkg-config --static does not link"
! readelf -d "$work/program" | grep libmixtape >/dev/null || fail "the program needs libmixtape.so"
readelf -d "$work/program" | grep libzip >/dev/null || fail "the program does not read files"
"$work/program" >/dev/null

scripts/uninstall "$BUILD" /opt/mix "$work/root" >>"$work/log"
left=$(cd "$installed" && find . ! -type d)
[ "$left" = ./share/doc/other ] || fail "left: $left"
! find "$installed" -name 'mixtape*' | grep . || fail "folders of its own are left"
tail -n 1 "$work/log"
