#include "base/text.h"

#include "base/alloc.h"
#include "base/number.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool enlarge(mix_text *text, size_t needed) {
  size_t size = 2 * needed + 256;
  char *larger = mix_realloc(text->text, size);
  if (!larger) {
    text->failed = true;
    return false;
  }
  text->text = larger;
  text->size = size;
  return true;
}

void mix_text_put(mix_text *text, const char *format, ...) {
  if (text->failed || (text->used >= text->size && !text->grows)) return;
  for (int attempt = 0; attempt < 2; attempt++) {
    size_t space = text->size > text->used ? text->size - text->used : 0;
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(space ? text->text + text->used : NULL, space, format, arguments);
    va_end(arguments);
    if (n < 0) return;
    if (!text->grows || (size_t)n < space) {
      text->used += (size_t)n;
      return;
    }
    if (!enlarge(text, text->used + (size_t)n)) return;
  }
}

void mix_text_put_number(mix_text *text, double x) {
  char number[40];
  mix_number_write_shortest(number, sizeof number, x);
  mix_text_put(text, "%s", number);
}

static bool plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '/' || c == ':' || c == '+' || c == '-';
}

void mix_text_put_quoted(mix_text *text, const char *word) {
  mix_text_put(text, "'");
  for (const char *c = word; *c; c++) {
    if ((unsigned char)*c < 0x20 || *c == 0x7f)
      mix_text_put(text, "\\x%02x", (unsigned)(unsigned char)*c);
    else
      mix_text_put(text, "%s%c", *c == '\'' || *c == '\\' ? "\\" : "", *c);
  }
  mix_text_put(text, "'");
}

void mix_text_put_word(mix_text *text, const char *word) {
  const char *c = word;
  while (plain(*c)) c++;
  if (*c || c == word)
    mix_text_put_quoted(text, word);
  else
    mix_text_put(text, "%s", word);
}

void mix_text_put_escaped(mix_text *text, const char *word) {
  for (; *word; word++) switch (*word) {
    case '<': mix_text_put(text, "&lt;"); break;
    case '>': mix_text_put(text, "&gt;"); break;
    case '&': mix_text_put(text, "&amp;"); break;
    case '"': mix_text_put(text, "&quot;"); break;
    default: mix_text_put(text, "%c", *word);
    }
}

void mix_text_put_dot(mix_text *text, const char *word) {
  for (; *word; word++)
    mix_text_put(text, "%s%c", *word == '"' || *word == '\\' ? "\\" : "",
                 (unsigned char)*word < ' ' ? ' ' : *word);
}

bool mix_is_choice(const char *choices, const char *word) {
  for (size_t length = strlen(word);; choices++) {
    size_t size = strcspn(choices, "|");
    if (size == length && !strncmp(choices, word, length)) return true;
    choices += size;
    if (!*choices) return false;
  }
}

bool mix_has_word(const char *list, const char *word) {
  const size_t length = strlen(word);
  while (list && *list) {
    list += strspn(list, ", ");
    const size_t here = strcspn(list, ", ");
    if (here == length && memcmp(list, word, length) == 0) return here > 0;
    list += here;
  }
  return false;
}
