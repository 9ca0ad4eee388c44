/* A hash table from names to numbers: nodes of a graph, ops of lists. Texts are borrowed. */
#pragma once

#include <stdbool.h>

typedef struct mix_amp_names {
  struct mix_amp_name {
    const char *text; /* NULL: free */
    int value;
  } * slots;
  int slot_count, count; /* slot_count is a power of two or 0 */
} mix_amp_names;

/* The value of a name, valid until the next name is added; NULL if there is none. */
int *mix_amp_names_find(const mix_amp_names *names, const char *text);
/* The value of a name, which is added with value 0 if it is new. NULL with the error recorded. */
int *mix_amp_names_add(mix_amp_names *names, const char *text);
void mix_amp_names_free(mix_amp_names *names);
