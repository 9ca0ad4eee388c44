/* The values of an array as text. */
#pragma once

#include "tensor/type.h"
#include <stddef.h>

/* "float32 (2, 3) [[1 2 3] [4 5 6]]": of an axis of more than six elements the first and the last three, with
 * "..." between. Cut to the size. */
void mix_values_text(const void *data, mix_type type, char *text, size_t size);
