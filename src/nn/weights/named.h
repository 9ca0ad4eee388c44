/* Kinds by name: the tables of initializers, regularizers and constraints. */
#pragma once

#include "base/did_you_mean.h"
#include "base/error.h"
#include "base/text.h"
#include <string.h>

/* NULL with the error of a name that no row has. */
static inline void *mix_unknown_name(const char *what, const char *given, const void *rows, size_t count,
                                     size_t size) {
  char list[512], hint[100];
  mix_text names = {.text = list, .size = sizeof list};
  mix_did_you_mean nearest = {.word = given ? given : ""};
  for (size_t i = 0; i < count; i++) {
    const char *const *row = (const void *)((const char *)rows + i * size);
    mix_did_you_mean_try(&nearest, row[0]);
    mix_did_you_mean_try(&nearest, row[1]);
    size_t before = 0;
    while (before < i && strcmp(*(const char *const *)((const char *)rows + before * size), row[0])) before++;
    if (before == i) mix_text_put(&names, "%s%s", i ? ", " : "", row[0]); /* aliases repeat a name */
  }
  return mix_fail_value("%s: '%.60s' is not known%s; expected one of %s", what,
                  given ? given : "NULL", mix_did_you_mean_hint(&nearest, hint, sizeof hint), list);
}

/* The first row of `table` whose first two members, the name and the class name, include `given`; else NULL
 * with an error that lists the names. */
#define mix_find_named(what, given, table)                                                                   \
  mix_find_named_of(what, given, table, sizeof(table) / sizeof *(table), sizeof *(table))
static inline const void *mix_find_named_of(const char *what, const char *given, const void *rows,
                                            size_t count, size_t size) {
  for (size_t i = 0; i < count && given; i++) {
    const char *const *row = (const void *)((const char *)rows + i * size);
    if (!strcmp(row[0], given) || !strcmp(row[1], given)) return row;
  }
  return mix_unknown_name(what, given, rows, count, size);
}

/* False with the error recorded if both a name and an object are given, or an error is pending. */
static inline bool mix_one_given(const char *what, const char *name, const void *object, const char *call) {
  if (!mix_failed() && name && object)
    mix_fail_value("%s: both the %s '%.60s' and an object were given; give one", call, what, name);
  return !mix_failed();
}
