/* Advice first, delta debugging where it runs dry, and then each item in turn. */
#include "train/tune/search.h"
#include "train/tune/tune.h"

#include "base/alloc.h"
#include <string.h>

typedef struct search_state {
  const mix_search *search;
  bool *set; /* the best so far */
  bool *tried, *suspects;
} search_state;

/* Asks about `tried`, which becomes the best set if it is enough. */
static mix_answer ask_tried(search_state *s) {
  const mix_answer answer = s->search->ask(s->search->context, s->tried, NULL);
  if (answer == MIX_ENOUGH) memcpy(s->set, s->tried, (size_t)s->search->count);
  return answer;
}

/* Adds suspects until the set is enough. MIX_NOT_ENOUGH: there are no new ones. */
static mix_answer follow_suspects(search_state *s) {
  const int count = s->search->count;
  for (;;) {
    memset(s->suspects, 0, (size_t)count);
    const mix_answer answer = s->search->ask(s->search->context, s->set, s->suspects);
    if (answer != MIX_NOT_ENOUGH) return answer;
    bool added = false;
    for (int i = 0; i < count; i++)
      if (s->suspects[i] && !s->set[i]) s->set[i] = added = true;
    if (!added) return MIX_NOT_ENOUGH;
  }
}

/* `tried` becomes part `part` of `parts` of the set's items, or all others. */
static void take_part(search_state *s, int part, int parts, bool others) {
  const int size = mix_tune_size(s->set, s->search->count);
  const int from = part * size / parts, to = (part + 1) * size / parts;
  for (int i = 0, item = 0; i < s->search->count; i++) {
    const bool inside = s->set[i] && item >= from && item < to;
    s->tried[i] = s->set[i] && inside != others;
    item += s->set[i];
  }
}

/* One round: each part alone, then all but each part. */
static mix_answer try_parts(search_state *s, int parts, bool *was_part) {
  for (int round = 0; round < 2; round++)
    for (int part = 0; part < parts; part++) {
      if (round && parts == 2) break; /* the others of a half are the other half */
      take_part(s, part, parts, round);
      const mix_answer answer = ask_tried(s);
      *was_part = !round;
      if (answer != MIX_NOT_ENOUGH) return answer;
    }
  return MIX_NOT_ENOUGH;
}

/* Delta debugging: ever finer parts of a set that is enough. */
static mix_answer reduce_by_parts(search_state *s) {
  for (int parts = 2;;) {
    const int size = mix_tune_size(s->set, s->search->count);
    bool was_part = false;
    if (size < 2) return MIX_ENOUGH;
    if (parts > size) parts = size;
    const mix_answer answer = try_parts(s, parts, &was_part);
    if (answer == MIX_NO_ANSWER) return answer;
    if (answer == MIX_ENOUGH)
      parts = was_part || parts <= 3 ? 2 : parts - 1;
    else if (parts == size)
      return MIX_ENOUGH;
    else
      parts *= 2;
  }
}

/* Leaves out one item after the other, until a whole pass finds none to leave out. */
static mix_answer leave_out(search_state *s) {
  for (bool changed = true; changed;) {
    changed = false;
    for (int i = 0; i < s->search->count; i++) {
      if (!s->set[i]) continue;
      memcpy(s->tried, s->set, (size_t)s->search->count);
      s->tried[i] = false;
      const mix_answer answer = ask_tried(s);
      if (answer == MIX_NO_ANSWER) return answer;
      changed |= answer == MIX_ENOUGH;
    }
  }
  return MIX_ENOUGH;
}

static mix_answer run(search_state *s) {
  mix_answer answer = follow_suspects(s);
  if (answer == MIX_NO_ANSWER) return answer;
  if (answer == MIX_NOT_ENOUGH) {
    memset(s->tried, true, (size_t)s->search->count);
    answer = ask_tried(s);
    if (answer == MIX_ENOUGH) answer = reduce_by_parts(s);
    if (answer != MIX_ENOUGH) return answer;
  }
  return leave_out(s);
}

mix_answer mix_search_smallest(const mix_search *search) {
  const size_t count = (size_t)search->count;
  bool *memory = mix_calloc(3 * count, sizeof *memory);
  if (!memory) return MIX_NO_ANSWER;
  const mix_answer answer = run(&(search_state){search, memory, memory + count, memory + 2 * count});
  mix_free(memory);
  return answer;
}
