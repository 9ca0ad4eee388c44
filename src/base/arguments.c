/* The check of the arguments that the macros of C take without names. */
#include "base/error.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* The text of one argument, without the space around it. */
typedef struct argument {
  const char *begin;
  int length;
} argument;

/* Behind the text or character literal that begins here. */
static const char *behind_literal(const char *at) {
  const char quote = *at++;
  for (; *at && *at != quote; at++)
    if (*at == '\\' && at[1]) at++;
  return *at ? at + 1 : at;
}

/* Takes the text up to the next comma outside brackets. False at the end. */
static bool next_argument(const char **text, argument *found) {
  const char *at = *text;
  int depth = 0;
  while (isspace((unsigned char)*at)) at++;
  if (!*at) return false;
  found->begin = at;
  while (*at && (*at != ',' || depth)) {
    if (*at == '"' || *at == '\'') {
      at = behind_literal(at);
      continue;
    }
    depth += strchr("({[", *at) ? 1 : strchr(")}]", *at) ? -1 : 0;
    at++;
  }
  *text = *at ? at + 1 : at;
  while (at > found->begin && isspace((unsigned char)at[-1])) at--;
  found->length = (int)(at - found->begin);
  return true;
}

static bool is_named(argument a) {
  return a.begin[0] == '.' && (isalpha((unsigned char)a.begin[1]) || a.begin[1] == '_');
}

/* Is it 0, 0.0, -0 or 0u? */
static bool is_zero(argument a) {
  bool digits = false;
  for (int i = 0; i < a.length; i++) {
    digits |= a.begin[i] == '0';
    if (!strchr("0.-+fFlLuU", a.begin[i])) return false;
  }
  return digits;
}

static const void *refuse(const char *call, const char *names, argument a, bool is_late) {
  char known[200];
  int length = 0;
  for (; *names && length + 1 < (int)sizeof known; names++)
    if (*names != '!') known[length++] = *names;
  known[length] = '\0';
  mix_fail(MIX_TYPE_ERROR,
           "%s: the argument '%.*s' has no name%s; without a name %s takes %s; write .NAME = %.*s", call,
           a.length < 60 ? a.length : 60, a.begin, is_late ? " and follows one that has" : "", call,
           length ? known : "none", a.length < 60 ? a.length : 60, a.begin);
  return mix_options_refused();
}

static const void *refuse_zero(const char *call, int length, const char *name, argument a) {
  mix_fail(
      MIX_TYPE_ERROR,
      "%s: the argument '%.*s' would mean the default of .%.*s; write what the header says of zero there",
      call, a.length, a.begin, length, name);
  return mix_options_refused();
}

const void *mix_arguments(const char *call, const char *names, const char *text, const void *options) {
  bool seen_name = false;
  argument a;
  for (const char *next = names; next_argument(&text, &a);) {
    if (is_named(a)) {
      seen_name = true;
      continue;
    }
    argument name;
    if (seen_name || !next_argument(&next, &name)) return refuse(call, names, a, seen_name);
    if (*name.begin == '!' && is_zero(a)) return refuse_zero(call, name.length - 1, name.begin + 1, a);
  }
  return options;
}
