/* Python's regular expressions, asked only whether they match (re.fullmatch, re.search). Then greedy
 * and lazy repetitions are the same, and the automaton takes time that is linear in the text. */
#pragma once

#include <stdbool.h>

/* Does the expression match all of the text? False too with the error recorded: a ValueError where Python has
 * re.error; MIX_UNSUPPORTED for what is no regular language or changes matching (lookahead and lookbehind,
 * references to groups, possessive repetition, atomic groups, conditions, flags, \N{...}). Both are UTF-8.
 * \d are the ASCII digits; beyond ASCII all but spaces is \w. `call` begins the message. */
bool mix_pattern_matches(const char *pattern, const char *text, const char *call);
/* Does it match a part of the text (re.search)? The same errors. */
bool mix_pattern_is_in(const char *pattern, const char *text, const char *call);
