/* Parts of the library that a build may leave out (cmake/MixtapeFeatures.cmake). What stands in for a part
 * (src/absent/) fails by these. */
#pragma once

#include <mixtape/status.h>

/* Records that this build has no `part`, and returns NULL (or false). `call`: what needs it. */
void *mix_fail_absent(const char *call, const char *part);
/* Writes the same as a reason, without an error: "this build leaves the part "images" out; ...". */
void mix_absent_reason(const char *part, char *text, size_t size);
