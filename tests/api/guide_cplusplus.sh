# The guide's example in C++ prints what that in C prints, number by number, and has no more lines of code.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "guide_cplusplus: $*" >&2; exit 1; }
lines() { grep -vcE '^ *(//|/\*|\*|$)' "$PROJECT/examples/$1"; }
"$BUILD/examples/01_guide" digits 16 500 1 >"$work/c" 2>"$work/log" || fail "in C: $(cat "$work/log")"
"$BUILD/examples/01_guide_cplusplus" digits 16 500 1 >"$work/cplusplus" 2>"$work/log" ||
  fail "in C++: $(cat "$work/log")"
grep 'Test loss: [0-9]' "$work/c" >/dev/null || fail "the example in C prints no loss: $(cat "$work/c")"
diff "$work/c" "$work/cplusplus" || fail "they print other lines"
! MIXTAPE_DATA_DIR=/none MIXTAPE_OFFLINE=1 KERAS_HOME=/none HOME=/none \
  "$BUILD/examples/01_guide_cplusplus" mnist >"$work/log" 2>&1 || fail "it finds MNIST where none is"
grep 'Error: ' "$work/log" >/dev/null || fail "its error is: $(cat "$work/log")"
[ "$(lines 01_guide.cpp)" -le "$(lines 01_guide.c)" ] ||
  fail "01_guide.cpp has $(lines 01_guide.cpp) lines of code, 01_guide.c $(lines 01_guide.c)"
echo "$(lines 01_guide.cpp) lines of code, in C $(lines 01_guide.c)"
