/* Compiles an expression into Thompson's automaton (1968) and runs it. Offsets of its jumps are relative, so
 * that repetitions copy pieces of it. */
#include "base/pattern.h"

#include "base/alloc.h"
#include "base/error.h"
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef enum kind { TAKE, SPLIT, JUMP, AT_BEGIN, AT_END, BEFORE_LAST_NEWLINE, AT_WORD, NOT_AT_WORD } kind;

typedef struct instruction {
  kind kind;
  int to; /* SPLIT, JUMP: relative; TAKE: where the pattern says which characters */
} instruction;

enum { MAX_INSTRUCTIONS = 20000, MAX_DEPTH = 100, NO_LIMIT = -1 };

typedef struct compiler {
  const char *pattern, *call;
  int at, depth;
  instruction *program;
  int count, capacity;
} compiler;

/* ---- characters ---- */

/* The character at *at, behind which it moves; of bad UTF-8 each byte is one. */
static uint32_t read_character(const char *text, int *at) {
  const unsigned char *bytes = (const unsigned char *)text + *at;
  const int more = bytes[0] >= 0xf0 ? 3 : bytes[0] >= 0xe0 ? 2 : bytes[0] >= 0xc0 ? 1 : 0;
  uint32_t c = more ? bytes[0] & (0x3fu >> more) : bytes[0];
  for (int i = 1; i <= more; i++) {
    if ((bytes[i] & 0xc0) != 0x80) return (*at)++, bytes[0];
    c = c << 6 | (bytes[i] & 0x3fu);
  }
  *at += more + 1;
  return c;
}

static bool is_space(uint32_t c) {
  return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}
static bool is_word(uint32_t c) { return c < 128 ? isalnum((int)c) || c == '_' : !is_space(c); }

/* Is the character in the class of the letter behind a backslash? */
static bool in_class(char letter, uint32_t c) {
  bool in = false;
  switch (tolower(letter)) {
  case 'd': in = c >= '0' && c <= '9'; break;
  case 's': in = is_space(c); break;
  default: in = is_word(c);
  }
  return islower((unsigned char)letter) ? in : !in;
}

static bool is_class(char letter) { return letter && strchr("dDsSwW", letter); }

/* ---- errors ---- */

static bool refuse(const compiler *c, const char *why, int at) {
  return mix_fail_value("%s: '%.100s' is no valid regular expression: %s at position %d", c->call, c->pattern,
                        why, at);
}
static bool refuse_kind(const compiler *c, const char *what, int at) {
  return mix_fail_unsupported(
      "%s: '%.100s' has %s at position %d, which this library does not match; expected letters, classes, "
      "groups, | and repetitions",
      c->call, c->pattern, what, at);
}

/* ---- one character of the pattern ---- */

/* So many hexadecimal digits; -1: there are fewer. */
static int32_t read_hex(const char *text, int digits) {
  int32_t value = 0;
  for (int i = 0; i < digits; i++) {
    if (!isxdigit((unsigned char)text[i])) return -1;
    value = value << 4 | (isdigit((unsigned char)text[i]) ? text[i] - '0' : tolower(text[i]) - 'a' + 10);
  }
  return value;
}

/* Up to three octal digits. */
static uint32_t read_octal(const char *text, int *at) {
  uint32_t value = 0;
  for (int i = 0; i < 3 && text[*at] >= '0' && text[*at] <= '7'; i++)
    value = value << 3 | (uint32_t)(text[(*at)++] - '0');
  return value;
}

static bool is_octal(const char *text) {
  return *text == '0' || (strspn(text, "01234567") >= 3 && text[0] <= '3');
}

/* What the escape at *at stands for, behind which it moves. False: it is none, and *at stays. */
static bool read_escape(const char *pattern, int *at, uint32_t *c) {
  static const char letters[] = "abfnrtv", values[] = "\a\b\f\n\r\t\v";
  const char letter = pattern[*at + 1], *found = letter ? strchr(letters, letter) : NULL;
  const int digits = letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
  if (!letter) return false;
  if (is_octal(pattern + *at + 1)) return (*at)++, *c = read_octal(pattern, at), true;
  if (digits) {
    const int32_t value = read_hex(pattern + *at + 2, digits);
    if (value < 0) return false;
    *at += 2 + digits;
    return *c = (uint32_t)value, true;
  }
  if (found) return *at += 2, *c = (unsigned char)values[found - letters], true;
  if (isalnum((unsigned char)letter)) return false;
  (*at)++;
  *c = read_character(pattern, at);
  return true;
}

/* An item of a set: a class (its letter in *class) or a character. */
static bool read_set_item(const char *pattern, int *at, char *class, uint32_t *c) {
  *class = 0;
  if (pattern[*at] != '\\') return *c = read_character(pattern, at), true;
  if (!is_class(pattern[*at + 1])) return read_escape(pattern, at, c);
  *class = pattern[*at + 1];
  *at += 2;
  return true;
}

/* Is `c` in the set at *at, behind which it moves? *problem: the reason why it is none, NULL. */
static bool in_set(const char *pattern, int *at, uint32_t c, const char **problem) {
  const bool negated = pattern[*at + 1] == '^';
  int i = *at + 1 + negated;
  bool in = false;
  *problem = NULL;
  for (const int first = i; i == first || pattern[i] != ']';) {
    uint32_t low = 0, high = 0;
    char class = 0, other = 0;
    if (!pattern[i]) return *problem = "unterminated character set", false;
    if (!read_set_item(pattern, &i, &class, &low)) return *problem = "bad escape", false;
    high = low;
    if (pattern[i] == '-' && pattern[i + 1] && pattern[i + 1] != ']') {
      i++;
      if (!read_set_item(pattern, &i, &other, &high)) return *problem = "bad escape", false;
      if (class || other || high < low) return *problem = "bad character range", false;
    }
    in |= class ? in_class(class, c) : low <= c && c <= high;
  }
  *at = i + 1;
  return in != negated;
}

/* Does what stands there take the character? It is checked when the pattern is compiled. */
static bool takes(const char *pattern, int at, uint32_t c) {
  const char *problem;
  uint32_t literal;
  switch (pattern[at]) {
  case '.': return c != '\n';
  case '[': return in_set(pattern, &at, c, &problem);
  case '\\':
    if (is_class(pattern[at + 1])) return in_class(pattern[at + 1], c);
    return read_escape(pattern, &at, &literal) && literal == c;
  default: return read_character(pattern, &at) == c;
  }
}

/* ---- the compiler ---- */

static bool put(compiler *c, int place, kind kind, int to) {
  if (c->count == MAX_INSTRUCTIONS)
    return mix_fail_unsupported("%s: '%.100s' is too large an expression", c->call, c->pattern);
  if (!mix_reserve(&c->program, &c->capacity, c->count + 1, sizeof *c->program)) return false;
  memmove(c->program + place + 1, c->program + place, (size_t)(c->count - place) * sizeof *c->program);
  c->program[place] = (instruction){kind, to};
  c->count++;
  return true;
}

static bool append(compiler *c, kind kind, int to) { return put(c, c->count, kind, to); }

static bool append_copy(compiler *c, const instruction *piece, int count) {
  bool good = true;
  for (int i = 0; good && i < count; i++) good = append(c, piece[i].kind, piece[i].to);
  return good;
}

static bool compile_choices(compiler *c);

static bool compile_escape(compiler *c) {
  const char letter = c->pattern[c->at + 1];
  const int start = c->at;
  uint32_t literal;
  static const struct {
    char letter;
    kind kind;
  } places[] = {{'A', AT_BEGIN}, {'Z', AT_END}, {'b', AT_WORD}, {'B', NOT_AT_WORD}};
  if (!letter) return refuse(c, "bad escape (end of pattern)", start);
  for (int i = 0; i < 4; i++)
    if (letter == places[i].letter) return c->at += 2, append(c, places[i].kind, 0);
  if (letter == 'N') return refuse_kind(c, "\\N", start);
  if (is_class(letter))
    c->at += 2;
  else if (isdigit((unsigned char)letter) && !is_octal(c->pattern + start + 1))
    return refuse_kind(c, "a reference to a group", start);
  else if (!read_escape(c->pattern, &c->at, &literal))
    return refuse(c, "bad escape", start);
  return append(c, TAKE, start);
}

static bool compile_set(compiler *c) {
  const char *problem;
  const int start = c->at;
  in_set(c->pattern, &c->at, 0, &problem);
  return problem ? refuse(c, problem, start) : append(c, TAKE, start);
}

/* Moves into a group that is only a group. */
static bool open_group(compiler *c) {
  const char *text = c->pattern + c->at + 1;
  const int start = c->at;
  c->at++;
  if (*text != '?') return true;
  if (text[1] == ':') return c->at += 2, true;
  if (text[1] == 'P' && text[2] == '<') {
    const size_t length = strcspn(text + 3, ">");
    if (!length || text[3 + length] != '>' || isdigit((unsigned char)text[3]))
      return refuse(c, "bad name of a group", start);
    return c->at += (int)length + 4, true;
  }
  if (!text[1] || !strchr("=!<>(P#aiLmsux-", text[1])) return refuse(c, "unknown extension", start);
  return refuse_kind(c, "a group of the kind (?...)", start);
}

static bool compile_group(compiler *c) {
  const int start = c->at;
  if (!open_group(c)) return false;
  if (++c->depth > MAX_DEPTH) return refuse_kind(c, "groups in too many groups", start);
  if (!compile_choices(c)) return false;
  c->depth--;
  if (c->pattern[c->at] != ')') return refuse(c, "missing ), unterminated subpattern", start);
  c->at++;
  return true;
}

/* {2}, {2,}, {,3}, {2,3}. False without an error: the brace is a character. */
static bool read_counts(const compiler *c, int *at, int *low, int *high) {
  const char *text = c->pattern + *at;
  int i = 1;
  long number[2] = {-1, -1};
  bool comma = false;
  for (int k = 0; k < 2; k++) {
    for (; isdigit((unsigned char)text[i]); i++) {
      const long before = number[k] < 0 ? 0 : number[k];
      number[k] = before > MAX_INSTRUCTIONS ? before : 10 * before + (text[i] - '0');
    }
    if (k || text[i] != ',') break;
    comma = true;
    i++;
  }
  if (text[i] != '}' || (!comma && number[0] < 0)) return false;
  *low = number[0] < 0 ? 0 : (int)number[0];
  *high = !comma ? *low : number[1] < 0 ? NO_LIMIT : (int)number[1];
  *at += i + 1;
  return true;
}

static bool read_repetition(const compiler *c, int *at, int *low, int *high) {
  const char sign = c->pattern[*at];
  if (sign == '{') return read_counts(c, at, low, high);
  if (!sign || !strchr("*+?", sign)) return false;
  *low = sign == '+';
  *high = sign == '?' ? 1 : NO_LIMIT;
  (*at)++;
  return true;
}

/* The piece from `start` on, at least `low` and at most `high` times. */
static bool repeat(compiler *c, int start, int low, int high) {
  const int length = c->count - start;
  instruction *piece = mix_alloc((size_t)length * sizeof *piece);
  if (!piece) return false;
  memcpy(piece, c->program + start, (size_t)length * sizeof *piece);
  c->count = start;
  bool good = true;
  for (int i = 0; good && i < low; i++) good = append_copy(c, piece, length);
  if (high == NO_LIMIT)
    good =
        good && append(c, SPLIT, length + 2) && append_copy(c, piece, length) && append(c, JUMP, -length - 1);
  for (int i = low; good && i < high; i++)
    good = append(c, SPLIT, (high - i) * (length + 1)) && append_copy(c, piece, length);
  mix_free(piece);
  return good;
}

/* A position, which Python does not repeat outside a group. */
static bool is_place(const char *item) {
  return *item == '^' || *item == '$' || (*item == '\\' && item[1] && strchr("AZbB", item[1]));
}

static bool compile_repetition(compiler *c, int start, int place) {
  int low, high, at = c->at;
  if (!read_repetition(c, &c->at, &low, &high)) return true;
  if (high != NO_LIMIT && high < low) return refuse(c, "min repeat greater than max repeat", at);
  if (is_place(c->pattern + place)) return refuse(c, "nothing to repeat", at);
  if (c->pattern[c->at] == '?')
    c->at++;
  else if (c->pattern[c->at] == '+')
    return refuse_kind(c, "a possessive repetition", at);
  at = c->at;
  if (read_repetition(c, &at, &(int){0}, &(int){0})) return refuse(c, "multiple repeat", c->at);
  return repeat(c, start, low, high);
}

static bool compile_item(compiler *c) {
  int place = c->at;
  switch (c->pattern[place]) {
  case '(': return compile_group(c);
  case '[': return compile_set(c);
  case '\\': return compile_escape(c);
  case '^': return c->at++, append(c, AT_BEGIN, 0);
  case '$': return c->at++, append(c, BEFORE_LAST_NEWLINE, 0);
  case '*':
  case '+':
  case '?': return refuse(c, "nothing to repeat", place);
  case '{':
    if (read_repetition(c, &place, &(int){0}, &(int){0})) return refuse(c, "nothing to repeat", c->at);
  }
  read_character(c->pattern, &c->at);
  return append(c, TAKE, place);
}

static bool compile_sequence(compiler *c) {
  while (c->pattern[c->at] && !strchr("|)", c->pattern[c->at])) {
    const int start = c->count, place = c->at;
    if (!compile_item(c) || !compile_repetition(c, start, place)) return false;
  }
  return true;
}

static bool compile_choices(compiler *c) {
  const int start = c->count;
  if (!compile_sequence(c)) return false;
  if (c->pattern[c->at] != '|') return true;
  /* SPLIT first, JUMP behind it; each further choice begins behind the JUMP. */
  c->at++;
  const int length = c->count - start;
  if (++c->depth > MAX_DEPTH * MAX_DEPTH) return refuse_kind(c, "too many choices", c->at);
  if (!put(c, start, SPLIT, length + 2) || !append(c, JUMP, 0)) return false;
  const int jump = c->count - 1;
  if (!compile_choices(c)) return false;
  c->depth--;
  c->program[jump].to = c->count - jump;
  return true;
}

/* ---- the run ---- */

typedef struct run {
  const compiler *c;
  const char *text;
  int *states, *stack;
  int count;
  int *marked; /* for which position of the text a state was added last */
} run;

static bool word_at(const char *text, int at, int before) {
  /* The last character before: back to the first byte of it. */
  if (before) {
    if (!at) return false;
    for (at--; at && ((unsigned char)text[at] & 0xc0) == 0x80;) at--;
  }
  return text[at] && is_word(read_character(text, &at));
}

static bool holds(kind kind, const char *text, int at) {
  const bool border = word_at(text, at, 1) != word_at(text, at, 0);
  switch (kind) {
  case AT_BEGIN: return !at;
  case AT_END: return !text[at];
  case BEFORE_LAST_NEWLINE: return !text[at] || (text[at] == '\n' && !text[at + 1]);
  case AT_WORD: return border;
  default: return !border;
  }
}

/* Adds the state and all that it leads to without a character. */
static void add(run *r, int state, int at) {
  const compiler *c = r->c;
  int depth = 0;
  r->stack[depth++] = state;
  while (depth) {
    state = r->stack[--depth];
    if (r->marked[state] == at + 1) continue;
    r->marked[state] = at + 1;
    if (state == c->count || c->program[state].kind == TAKE) {
      r->states[r->count++] = state;
      continue;
    }
    const instruction *i = &c->program[state];
    if (i->kind == SPLIT || i->kind == JUMP) r->stack[depth++] = state + i->to;
    if (i->kind == SPLIT || (i->kind != JUMP && holds(i->kind, r->text, at))) r->stack[depth++] = state + 1;
  }
}

static bool run_program(run *r, int *next) {
  int at = 0;
  bool found = false;
  add(r, 0, 0);
  while (r->text[at] && r->count) {
    const uint32_t character = read_character(r->text, &at);
    const int count = r->count;
    memcpy(next, r->states, (size_t)count * sizeof *next);
    r->count = 0;
    for (int i = 0; i < count; i++)
      if (next[i] < r->c->count && takes(r->c->pattern, r->c->program[next[i]].to, character))
        add(r, next[i] + 1, at);
  }
  for (int i = 0; i < r->count; i++) found |= r->states[i] == r->c->count;
  return found;
}

static bool run_on(const compiler *c, const char *text) {
  const size_t states = (size_t)c->count + 1;
  int *memory = mix_calloc(5 * states, sizeof *memory);
  if (!memory) return false;
  /* A state is on the stack at most twice: each is expanded once and pushes two. */
  run r = {c, text, memory, memory + states, 0, memory + 3 * states};
  const bool found = run_program(&r, memory + 4 * states);
  mix_free(memory);
  return found;
}

bool mix_pattern_matches(const char *pattern, const char *text, const char *call) {
  compiler c = {.pattern = pattern, .call = call};
  bool found = false;
  if (compile_choices(&c)) {
    if (c.pattern[c.at] == ')')
      refuse(&c, "unbalanced parenthesis", c.at);
    else
      found = run_on(&c, text);
  }
  mix_free(c.program);
  return found;
}

bool mix_pattern_is_in(const char *pattern, const char *text, const char *call) {
  static const char around[] = "(?:.|\n)*(?:%s)(?:.|\n)*";
  /* by itself first: `a)(b` is no expression */
  if (mix_pattern_matches(pattern, text, call) || mix_failed()) return !mix_failed();
  const size_t size = strlen(pattern) + sizeof around;
  char *longer = mix_alloc(size);
  if (!longer) return false;
  snprintf(longer, size, around, pattern);
  const bool found = mix_pattern_matches(longer, text, call);
  mix_free(longer);
  return found;
}
