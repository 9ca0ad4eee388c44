/* The report: why each type was converted or not, as a table. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/format.h"
#include "amp/paint.h"

#include <stdio.h>
#include <string.h>

/* Text of each reason. %s is the name of the node that caused it, and of a second one. */
static const char *const decisions[] = {
    [MIX_AMP_LISTED] = "its op is in the allow list",
    [MIX_AMP_FORCED] = "forced by LEVEL=UNSAFE_FORCE_ALL",
    [MIX_AMP_LIST_ALLOWED] = "its tensor list is converted, because '%s' is",
    [MIX_AMP_BETWEEN] = "lies between the allow ops '%s' and '%s'",
    [MIX_AMP_BEHIND] = "an infer op right behind the converted '%s'",
    [MIX_AMP_BESIDE] = "a clear op that clear ops join to the converted '%s'",
    [MIX_AMP_LOOP_ALLOWED] = "the Merges that it closes a loop with are converted",
    [MIX_AMP_CAST_ALLOWED] = "only converted ops read it",
    [MIX_AMP_PRESERVED] = "fetched, fed or kept: its dtype stays",
    [MIX_AMP_ELSEWHERE] = "on a device that this mode leaves alone",
    [MIX_AMP_OLD_GPU] = "on a GPU older than compute capability 7.0",
    [MIX_AMP_DENIED] = "its op is in the deny list",
    [MIX_AMP_REACHED] = "the deny op '%s' reaches it",
    [MIX_AMP_UNSAFE_LIST] = "its tensor list meets '%s', behind which it may be anything",
    [MIX_AMP_LIST_DENIED] = "its tensor list stays, because '%s' does",
    [MIX_AMP_LOOP_DENIED] = "the Merge '%s' of its loop is not converted",
};

static const char *name_of(const mix_amp_result *r, int type) {
  return type < 0 ? "?" : r->graph->nodes[r->graph->types[type].node].name;
}

/* Explains a float32 type that no rule reached. */
static void explain_undecided(const mix_amp_result *r, int type, char *text, size_t size) {
  const mix_amp_type *t = &r->graph->types[type];
  const char *target = mix_amp_dtype_name(r->target), *op = mix_amp_signature_of(r, t->node)->op;
  mix_amp_class class = (mix_amp_class)r->class[t->node];
  if (t->fixed)
    snprintf(text, size, "%s fixes it", op);
  else if (class == MIX_AMP_NONE)
    snprintf(text, size,
             strcmp(op, "Const") ? "its op is in no list" : "a constant, which is cast where it is read");
  else if (!mix_amp_takes(r, type))
    snprintf(text, size, "%s cannot take %s here", op, target);
  else if (class == MIX_AMP_CLEAR && !mix_amp_supports(r, type))
    snprintf(text, size, "no kernel of %s takes %s here", op, target);
  else if (class == MIX_AMP_INFER)
    snprintf(text, size, "an infer op neither between allow ops nor right behind a converted one%s",
             mix_amp_supports(r, type) ? "" : " (nor has it a kernel)");
  else
    snprintf(text, size, "no clear ops join it to a converted op (a variable's Identity is never converted)");
}

const char *mix_amp_explain(const mix_amp_result *r, int type, char *text, size_t size) {
  const mix_amp_type *t = &r->graph->types[type];
  mix_amp_reason reason = (mix_amp_reason)r->reason[type];
  bool stays = r->after[type] == t->dtype && !(r->emulated && mix_amp_is_allow(r, type));
  if (!mix_amp_is_float32(t))
    snprintf(text, size, "not float32");
  else if (r->message[0])
    snprintf(text, size, "the graph stays as it is: %s", r->message);
  else if (r->left[t->node] && stays)
    snprintf(text, size, "%s", decisions[r->left[t->node]]);
  else if (reason == MIX_AMP_UNDECIDED)
    explain_undecided(r, type, text, size);
  else if (reason == MIX_AMP_NOT_TAKEN)
    snprintf(text, size, "its op is in the allow list but cannot take %s here",
             mix_amp_dtype_name(r->target));
  else {
    /* Formats the text, which contains only %s. */
    const char *pattern = decisions[reason],
               *names[] = {name_of(r, r->cause[type]), name_of(r, r->other[type])};
    size_t used = 0, name_index = 0;
    for (; *pattern && used + 1 < size; pattern++) {
      if (pattern[0] != '%') {
        text[used++] = *pattern;
        continue;
      }
      int length = snprintf(text + used, size - used, "%s", MIX_PRINTABLE(names[name_index++]));
      used = used + (size_t)length < size ? used + (size_t)length : size - 1;
      pattern++;
    }
    text[used] = 0;
    if (r->emulated && !stays && used < size) snprintf(text + used, size - used, " (emulated: casts round)");
  }
  return text;
}

/* ---- the table ---- */

typedef struct sheet {
  char *text;
  size_t used, size;
  bool failed;
} sheet;

static void MIX_PRINTF(2, 3) put(sheet *s, const char *format, ...) {
  if (s->failed) return;
  va_list list;
  va_start(list, format);
  int length = vsnprintf(s->text ? s->text + s->used : NULL, s->size - s->used, format, list);
  va_end(list);
  if (s->used + (size_t)length >= s->size) {
    size_t size = 2 * (s->used + (size_t)length) + 256;
    char *text = mix_realloc(s->text, size);
    if (!text) {
      s->failed = true;
      return;
    }
    s->text = text;
    s->size = size;
    va_start(list, format);
    vsnprintf(text + s->used, size - s->used, format, list);
    va_end(list);
  }
  s->used += (size_t)length;
}

/* A node's rows show its float32 types, or its first type if there are none. */
static bool shown(const mix_amp_result *r, const mix_amp_signature *signature, int type, bool any_float) {
  return any_float ? r->graph->types[type].dtype == MIX_AMP_DTYPE_FLOAT32 : type == signature->first_type;
}

static bool any_float32(const mix_amp_graph *graph, const mix_amp_signature *signature) {
  for (int t = signature->first_type; t < signature->first_type + signature->type_count; t++)
    if (graph->types[t].dtype == MIX_AMP_DTYPE_FLOAT32) return true;
  return false;
}

/* " (cse 2, cache_weight_casts 3)": the number of casts that each pass removed. */
static void put_passes(sheet *s, const char *const *removed, int count) {
  bool first = true;
  for (int i = 0; i < count; i++) {
    int same = 0;
    bool before = false;
    for (int k = 0; removed[i] && k < count; k++) {
      if (!removed[k] || strcmp(removed[k], removed[i]) != 0) continue;
      before |= k < i;
      same++;
    }
    if (!same || before) continue;
    put(s, "%s%s %d", first ? " (" : ", ", removed[i], same);
    first = false;
  }
  if (!first) put(s, ")");
}

static int count_of(const char *const *removed, int count) {
  int found = 0;
  for (int i = 0; i < count; i++) found += removed[i] != NULL;
  return found;
}

static bool is_cast(const mix_amp_result *r, int node) {
  return !strcmp(mix_amp_signature_of(r, node)->op, "Cast");
}

/* The readers of a cast: later casts (emulation), or inputs of nodes. */
static void put_readers(sheet *s, const mix_amp_result *r, int number) {
  enum { SHOWN = 3 };
  const mix_amp_cast *cast = &r->casts[number];
  int readers = 0;
  for (int c = number + 1; cast->cast < 0 && c < r->cast_count && r->casts[c].node == cast->node &&
                           r->casts[c].port == cast->port;
       c++)
    if (r->casts[c].cast == number) put(s, "%scast%d", readers++ ? ", " : "", c);
  for (int u = cast->first_use; u < cast->first_use + cast->use_count; u++) {
    const mix_amp_input *input = &r->graph->inputs[r->uses[u]];
    if (u - cast->first_use < SHOWN)
      put(s, "%s%s:%d", readers++ ? ", " : "", MIX_PRINTABLE(r->graph->nodes[input->node].name),
          r->uses[u] - r->graph->nodes[input->node].first_input);
  }
  if (cast->use_count > SHOWN) put(s, " and %d more", cast->use_count - SHOWN);
  put(s, "\n");
}

static void put_casts(sheet *s, const mix_amp_result *r) {
  if (r->cast_count)
    put(s, "\n%-8s  %-8s  %-18s  %s -> input of\n", "inserted", "to", "removed by", "result of");
  for (int c = 0; c < r->cast_count; c++) {
    const mix_amp_cast *cast = &r->casts[c];
    char name[24];
    snprintf(name, sizeof name, "cast%d", c);
    put(s, "%-8s  %-8s  %-18s  ", name, mix_amp_dtype_name(cast->dtype),
        r->cast_removed[c] ? r->cast_removed[c] : "-");
    if (cast->cast >= 0)
      put(s, "cast%d -> ", cast->cast);
    else
      put(s, "%s:%d -> ", MIX_PRINTABLE(r->graph->nodes[cast->node].name), cast->port);
    put_readers(s, r, c);
  }
}

static void put_totals(sheet *s, const mix_amp_result *r) {
  int own = 0;
  for (int n = 0; n < r->graph->node_count; n++) own += is_cast(r, n);
  put(s,
      "\n%s: %s%s%s; converted %d of %d nodes%s, inserted %d casts (%d to %s besides those of constants and "
      "variables)\n",
      mix_amp_mode_name(r->options.mode), mix_amp_status_name(r->status), r->message[0] ? ": " : "",
      r->message, r->converted_nodes, r->graph->node_count, r->emulated ? " (emulated)" : "", r->cast_count,
      r->casts_to_target, mix_amp_dtype_name(r->target));
  if (r->cast_count) {
    put(s, "passes remove %d of the %d inserted casts", count_of(r->cast_removed, r->cast_count),
        r->cast_count);
    put_passes(s, r->cast_removed, r->cast_count);
  }
  if (own) {
    put(s, "%s %d of the graph's own %d casts", r->cast_count ? " and" : "passes remove",
        count_of(r->node_removed, r->graph->node_count), own);
    put_passes(s, r->node_removed, r->graph->node_count);
  }
  if (own || r->cast_count) put(s, "\n");
  if (r->bytes_saved || r->bytes_cast)
    put(s, "results are %lld bytes smaller; casts that stay write %lld bytes\n", (long long)r->bytes_saved,
        (long long)r->bytes_cast);
}

/* ---- its rows ---- */

typedef struct columns {
  int name, op;
} columns;

enum { LETTERS = 52 };

/* In so many letters, as all names of a column; longer ones end in dots. */
static void put_column(sheet *s, const char *text, int width) {
  const char *shown_text = MIX_PRINTABLE(text);
  const bool cut = mix_letters(shown_text) > (size_t)width;
  const int bytes = (int)mix_letters_bytes(shown_text, (size_t)(cut ? width - 3 : width));
  put(s, "%.*s%s%*s  ", bytes, shown_text, cut ? "..." : "", cut ? 0 : width - (int)mix_letters(shown_text),
      "");
}

static int letters_of(const char *text) {
  const size_t letters = mix_letters(MIX_PRINTABLE(text));
  return letters < LETTERS ? (int)letters : LETTERS;
}

static columns columns_of(const mix_amp_result *r) {
  columns c = {4, 2};
  for (int n = 0; n < r->graph->node_count; n++) {
    const int name = letters_of(r->graph->nodes[n].name), op = letters_of(mix_amp_signature_of(r, n)->op);
    if (name > c.name) c.name = name;
    if (op > c.op) c.op = op;
  }
  return c;
}

static void put_type(sheet *s, const mix_amp_result *r, const columns *c, int node, int type) {
  const char *class = mix_amp_class_name((mix_amp_class)r->class[node]), *removed = r->node_removed[node];
  char reason[1024] = "it has no types";
  const mix_amp_type *t = type < 0 ? NULL : &r->graph->types[type];
  put_column(s, r->graph->nodes[node].name, c->name);
  put_column(s, mix_amp_signature_of(r, node)->op, c->op);
  if (t) mix_amp_explain(r, type, reason, sizeof reason);
  put(s, "%-5s  %-13s  %-8s  %-8s  %s%s%s\n", class, t ? MIX_PRINTABLE(t->id) : "-",
      t ? mix_amp_dtype_name(t->dtype) : "-", t ? mix_amp_dtype_name(r->after[type]) : "-",
      MIX_PRINTABLE(reason), t && removed ? "; then removed by " : "", t && removed ? removed : "");
}

char *mix_amp_report(const mix_amp_result *r) {
  if (mix_failed() || !r) return NULL;
  const columns c = columns_of(r);
  sheet s = {0};
  put(&s, "%-*s  %-*s  %-5s  %-13s  %-8s  %-8s  %s\n", c.name, "node", c.op, "op", "list", "type", "before",
      "after", "reason");
  for (int n = 0; n < r->graph->node_count; n++) {
    const mix_amp_signature *signature = mix_amp_signature_of(r, n);
    const bool any = any_float32(r->graph, signature);
    if (signature->type_count == 0) put_type(&s, r, &c, n, -1);
    for (int t = signature->first_type; t < signature->first_type + signature->type_count; t++)
      if (shown(r, signature, t, any)) put_type(&s, r, &c, n, t);
  }
  put_casts(&s, r);
  put_totals(&s, r);
  if (!s.failed) return s.text;
  mix_free(s.text);
  return NULL;
}
