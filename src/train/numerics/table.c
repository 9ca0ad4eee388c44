/* The numerics report as a table. */
#include "base/alloc.h"
#include "base/format.h"
#include "tensor/shape.h"
#include "train/numerics/numerics.h"
#include <stdio.h>
#include <string.h>

enum { LINE = 1024, NAMES = 40 };

const char *mix_numerics_kind_name(mix_numerics_kind kind) {
  static const char *const names[] = {"data", "weight", "input", "intermediate", "output", "loss"};
  return names[kind];
}

/* Intermediate values only if they were the first non-finite value of a step. */
static bool is_shown(const mix_numerics_entry *entry) {
  return (entry->kind != MIX_NUMERICS_INTERMEDIATE && entry->kind != MIX_NUMERICS_INPUT) ||
         entry->first_forward || entry->first_gradient;
}

bool mix_numerics_drawn(const mix_numerics_entry *entry, bool gradient) {
  return is_shown(entry) && (!gradient || entry->has_gradient);
}

static const char *share_text(int64_t part, int64_t whole, char *text, size_t size) {
  double share = whole ? 100 * (double)part / (double)whole : 0;
  if (part == 0)
    snprintf(text, size, "-");
  else
    snprintf(text, size,
             share < 0.05                     ? "<0.1%%"
             : share >= 99.95 && part < whole ? ">99.9%%"
                                              : "%.1f%%",
             share);
  return text;
}

static const char *magnitude_text(double value, char *text, size_t size) {
  snprintf(text, size, value == 0 ? "-" : value >= 1e-3 && value < 99999.5 ? "%.5g" : "%.1e", value);
  return text;
}

static const char *count_text(int64_t count, char *text, size_t size) {
  if (count >= 10000000)
    snprintf(text, size, "%.1e", (double)count);
  else
    snprintf(text, size, count ? "%lld" : "-", (long long)count);
  return text;
}

/* Layer and tensor in at most so many letters. */
static const char *name_text(const mix_numerics_entry *entry, int width, char *text, size_t size) {
  const int length = snprintf(text, size, "%s/%s", MIX_PRINTABLE(entry->layer), MIX_PRINTABLE(entry->tensor));
  mix_mark_cut(text, size, (size_t)length);
  if (mix_letters(text) > (size_t)width) memcpy(text + mix_letters_bytes(text, (size_t)width - 3), "...", 4);
  return text;
}

/* The width of the name column. */
static int name_width(const mix_numerics *r, bool all) {
  int width = 12;
  for (int i = 0; i < r->entry_count; i++) {
    const mix_numerics_entry *entry = &r->entries[i];
    const int own =
        (int)(mix_letters(MIX_PRINTABLE(entry->layer)) + mix_letters(MIX_PRINTABLE(entry->tensor))) + 1;
    if ((all || is_shown(entry)) && own > width) width = own;
  }
  return width < NAMES ? width : NAMES;
}

static void put_row(mix_text *t, const mix_numerics_entry *entry, bool gradient, int width) {
  const mix_numerics_statistics *s = gradient ? &entry->gradient.statistics : &entry->forward.statistics;
  const bool first = gradient ? entry->first_gradient : entry->first_forward;
  char name[512], smallest[32], largest[32], zeros[32], subnormals[32], infinities[32], nans[32];
  int64_t nonzero = s->elements - s->zeros - s->infinities - s->nans;
  name_text(entry, width, name, sizeof name);
  mix_text_put(t, "%c %-*s %-8s %-13s %9s %9s %7s %9s %8s %8s\n", first ? '>' : ' ',
               mix_column_bytes(name, width), name, mix_dtype_name(entry->dtype),
               MIX_SHAPE_TEXT(entry->shape), magnitude_text(s->smallest, smallest, sizeof smallest),
               magnitude_text(s->largest, largest, sizeof largest),
               share_text(s->zeros, s->elements, zeros, sizeof zeros),
               share_text(s->subnormals, nonzero, subnormals, sizeof subnormals),
               count_text(s->infinities, infinities, sizeof infinities),
               count_text(s->nans, nans, sizeof nans));
}

static void put_head(mix_text *t, const char *title, int width) {
  mix_text_put(t, "\n%s\n  %-*s %-8s %-13s %9s %9s %7s %9s %8s %8s\n", title, width, "tensor", "dtype",
               "shape", "smallest", "largest", "zeros", "subnormal", "inf", "nan");
}

static void put_tensors(mix_text *t, const mix_numerics *r, bool all) {
  int width = name_width(r, all), left_out = 0;
  put_head(t, "Forward pass", width);
  for (int i = 0; i < r->entry_count; i++) {
    if (all || is_shown(&r->entries[i]))
      put_row(t, &r->entries[i], false, width);
    else
      left_out++;
  }
  put_head(t,
           r->scaled ? "Gradients of the scaled loss, in backward order"
                     : "Gradients of the loss, in backward order",
           width);
  for (int i = r->entry_count - 1; i >= 0; i--)
    if (r->entries[i].has_gradient && (all || is_shown(&r->entries[i])))
      put_row(t, &r->entries[i], true, width);
  mix_text_put(t, "\nsmallest, largest: of the nonzero finite magnitudes. zeros: of all values. subnormal: "
                  "of the nonzero ones.\n");
  if (r->incident_count) mix_text_put(t, "> marks where a step went wrong first.\n");
  if (left_out) mix_text_put(t, "%d intermediate tensors are left out.\n", left_out);
}

/* Consecutive incidents of one kind share a line. */
static void put_incidents(mix_text *t, const mix_numerics *r) {
  if (r->incident_count) mix_text_put(t, "\nSteps that went wrong\n");
  for (int first = 0, last; first < r->incident_count; first = last + 1) {
    mix_numerics_run_of_incidents(r, first, &first, &last);
    const mix_numerics_incident *a = &r->incidents[first], *b = &r->incidents[last];
    const mix_numerics_entry *entry = a->entry >= 0 ? &r->entries[a->entry] : NULL;
    const bool gradient = entry && !a->forward && !entry->scaled_loss;
    char steps[64], scales[64];
    snprintf(steps, sizeof steps, first == last ? "step %lld" : "steps %lld-%lld", (long long)a->step,
             (long long)b->step);
    snprintf(scales, sizeof scales, a->loss_scale == b->loss_scale ? "%g" : "%g to %g", a->loss_scale,
             b->loss_scale);
    mix_text_put(t, "  %-14s %s, loss scale %s: ", steps, a->applied ? "applied all the same" : "skipped",
                 scales);
    if (!entry)
      mix_text_put(t, "not looked at\n");
    else
      mix_text_put(t, "%s first in %s%s/%s%s%s\n", a->nan ? "NaN" : "infinity",
                   gradient ? "the gradient of " : "", MIX_PRINTABLE(entry->layer),
                   MIX_PRINTABLE(entry->tensor),
                   gradient ? ", made by the backward pass of " : ", forward pass",
                   gradient ? MIX_PRINTABLE(entry->blamed) : "");
  }
}

static void put_verdict(mix_text *t, const mix_numerics *r) {
  const mix_numerics_conclusion *c = mix_numerics_conclude(r);
  mix_text_put(t, "Verdict: %s. %s\n", c->status, MIX_PRINTABLE(c->text));
  for (int i = 0; i < c->advice_count; i++) mix_text_put(t, "  * %s\n", MIX_PRINTABLE(c->advice[i].text));
}

static void put_summary(mix_text *t, const mix_numerics *r) {
  mix_text_put(t, "Numerics of %lld steps", (long long)r->steps);
  if (r->watched != r->steps) mix_text_put(t, " (%lld looked at)", (long long)r->watched);
  mix_text_put(t, ", policy %s", r->policy ? r->policy : "none");
  if (r->rewrite != MIX_DTYPE_NONE) mix_text_put(t, " rewritten to %s", mix_dtype_name(r->rewrite));
  if (r->scaled && r->watched)
    mix_text_put(t, ", %s loss scale %g%s", r->dynamic ? "dynamic" : "fixed", r->scale,
                 r->dynamic && r->first_scale != r->scale ? " at the end" : "");
  else if (!r->scaled)
    mix_text_put(t, ", no loss scaling");
  mix_text_put(t, "; %lld skipped\n", (long long)r->skipped);
}

const char *mix_numerics_table(mix_numerics *r, bool all) {
  if (!mix_given(r, &mix_numerics_class, "numerics_table", "a numerics report") ||
      !mix_numerics_given(r, "numerics_table"))
    return NULL;
  size_t size = (size_t)(2 * r->entry_count + r->incident_count + 16) * 256 + 8 * LINE;
  mix_free(r->table);
  if (!(r->table = mix_alloc(size))) return NULL;
  mix_text t = {.text = r->table, .size = size};
  put_summary(&t, r);
  put_verdict(&t, r);
  put_incidents(&t, r);
  if (r->entry_count) put_tensors(&t, r, all);
  return r->table;
}
