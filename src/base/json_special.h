/* NaN and infinities in JSON, as Python writes them and JSON has them not. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Is it one of them? They are read as strings, which only this function knows, and written as they were. */
bool mix_json_special(const json_t *value, double *number);
