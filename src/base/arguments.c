/* The check of the arguments of the macros of C: their text, in which white space is single spaces. */
#include "base/error.h"

#include <ctype.h>
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

static int bracket(char c) {
  switch (c) {
  case '(':
  case '[':
  case '{': return 1;
  case ')':
  case ']':
  case '}': return -1;
  default: return 0;
  }
}

/* Takes the text up to the next comma outside brackets. False at the end, which is also a semicolon. */
static bool next_argument(const char **text, argument *found) {
  const char *at = *text;
  int depth = 0;
  while (*at == ' ') at++;
  if (!*at || *at == ';') return false;
  found->begin = at;
  while (*at && ((*at != ',' && *at != ';') || depth)) {
    if (*at == '"' || *at == '\'') {
      at = behind_literal(at);
      continue;
    }
    depth += bracket(*at++);
  }
  *text = *at == ',' ? at + 1 : at;
  while (at > found->begin && at[-1] == ' ') at--;
  found->length = (int)(at - found->begin);
  return true;
}

static bool is_named(argument a) {
  return a.begin[0] == '.' && (isalpha((unsigned char)a.begin[1]) || a.begin[1] == '_');
}

/* Is it 0, 0.0, -0, 0u or NULL? */
static bool is_zero(argument a) {
  bool digits = false;
  if (a.length == 4 && !strncmp(a.begin, "NULL", 4)) return true;
  for (int i = 0; i < a.length; i++) {
    digits |= a.begin[i] == '0';
    if (!strchr("0.-+fFlLuU", a.begin[i])) return false;
  }
  return digits;
}

/* Does it begin as a number does, which no struct can? */
static bool is_number(argument a) {
  const char *at = a.begin + strspn(a.begin, "+-( ");
  return isdigit((unsigned char)at[*at == '.']);
}

/* The text of `.name = text`; empty for `.name[0] = text` and the like. */
static argument named_value(argument a, argument *name) {
  const char *const end = a.begin + a.length, *at = a.begin + 1;
  name->begin = at;
  while (isalnum((unsigned char)*at) || *at == '_') at++;
  name->length = (int)(at - name->begin);
  while (*at == ' ') at++;
  if (at >= end || *at++ != '=') return (argument){end, 0};
  while (*at == ' ') at++;
  return (argument){at, (int)(end - at)};
}

/* The next word of "strides, dilation)". False at the bracket. */
static bool next_member(const char **list, argument *found) {
  const char *at = *list + strspn(*list, ", ");
  *found = (argument){at, (int)strcspn(at, ",)")};
  *list = at + found->length;
  return found->length > 0;
}

/* What makes the struct that a member is: MIX_SHAPE of "MIX_SHAPE(strides, dilation), MIX_AXES(axis)". */
static bool find_maker(const char *structs, argument name, argument *maker) {
  for (argument kind, member; next_argument(&structs, &kind);) {
    const char *list = kind.begin + strcspn(kind.begin, "(") + 1;
    *maker = (argument){kind.begin, (int)(list - 1 - kind.begin)};
    while (next_member(&list, &member))
      if (member.length == name.length && !strncmp(member.begin, name.begin, (size_t)name.length))
        return true;
  }
  return false;
}

static int shown(argument a) { return a.length < 60 ? a.length : 60; }

static const void *refuse(const char *call, const char *names, argument a, bool is_late) {
  char known[200];
  int length = 0;
  for (; *names && *names != ';' && length + 1 < (int)sizeof known; names++)
    if (*names != '!') known[length++] = *names;
  known[length] = '\0';
  mix_fail_type("%s: the argument '%.*s' has no name%s; without a name %s takes %s; write .NAME = %.*s", call,
                shown(a), a.begin, is_late ? " and follows one that has" : "", call, length ? known : "none",
                shown(a), a.begin);
  return mix_options_refused();
}

static const void *refuse_zero(const char *call, argument name, argument a) {
  mix_fail_type(
      "%s: the argument '%.*s' would mean the default of .%.*s; write what the header says of %s there", call,
      shown(a), a.begin, name.length, name.begin, *a.begin == 'N' ? "NULL" : "zero");
  return mix_options_refused();
}

/* True with the error recorded if a number is given for a struct. */
static bool refuses_number(const char *call, const char *structs, argument name, argument value) {
  argument maker;
  if (!structs || !is_number(value) || !find_maker(structs, name, &maker)) return false;
  mix_fail_type("%s: .%.*s is no single number; write .%.*s = %.*s(%.*s)", call, name.length, name.begin,
                name.length, name.begin, maker.length, maker.begin, shown(value), value.begin);
  return true;
}

const void *mix_arguments(const char *call, const char *names, const char *text, const void *options) {
  if (!call || !names || !text) {
    mix_fail_type("arguments: call, names or text is NULL; expected those of a macro of C");
    return mix_options_refused();
  }
  const char *const end = strchr(names, ';'), *const structs = end ? end + 1 : NULL;
  bool seen_name = false;
  argument a;
  for (const char *next = names; next_argument(&text, &a);) {
    argument name, value = a;
    if (is_named(a)) {
      seen_name = true;
      value = named_value(a, &name);
    } else {
      if (seen_name || !next_argument(&next, &name)) return refuse(call, names, a, seen_name);
      const bool is_marked = *name.begin == '!';
      name = (argument){name.begin + is_marked, name.length - is_marked};
      if (is_marked && is_zero(a)) return refuse_zero(call, name, a);
    }
    if (refuses_number(call, structs, name, value)) return mix_options_refused();
  }
  return options;
}
