/* The allow, infer, deny and clear lists of a mode and its versions, with edits. */
#include "amp/op_lists.h"
#include "base/alloc.h"
#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const mix_amp_class edited[MIX_AMP_EDITS] = {MIX_AMP_ALLOW, MIX_AMP_INFER, MIX_AMP_DENY, MIX_AMP_CLEAR,
                                                    MIX_AMP_ALLOW, MIX_AMP_INFER, MIX_AMP_DENY};
static const char *const class_names[] = {
    [MIX_AMP_ALLOW] = "allow", [MIX_AMP_INFER] = "infer", [MIX_AMP_DENY] = "deny", [MIX_AMP_CLEAR] = "clear"};

const char *mix_amp_class_list(mix_amp_class class) {
  int edit = 0;
  while (edited[edit] != class) edit++;
  return mix_amp_edit_names[edit];
}

static bool in_mode(const mix_amp_table *table, const mix_amp_options *options) {
  if (!(table->modes & 1u << options->mode)) return false;
  if (options->mode == MIX_AMP_CUDA_FLOAT16) {
    bool simulated = !options->has_gpu && options->simulate_gpu;
    return (simulated ? 11050 : options->cuda) >= table->cuda &&
           (simulated ? 8302 : options->cudnn) >= table->cudnn;
  }
  /* the versions that this mode assumes */
  return options->mode != MIX_AMP_CPU_FLOAT16 || (table->cuda <= 10000 && table->cudnn <= 8000);
}

/* TENSOR_CORES_ONLY leaves the float16 modes only their allow list, and ignores edits of the other lists. */
static bool emptied(const mix_amp_options *options, mix_amp_class class) {
  return options->level == MIX_AMP_TENSOR_CORES_ONLY && options->mode != MIX_AMP_ONEDNN_BFLOAT16 &&
         class != MIX_AMP_ALLOW;
}

static bool known(const char *op, const mix_amp_graph *graph) {
  for (int t = 0; t < mix_amp_table_count; t++)
    for (const char *const *row = mix_amp_tables[t].ops; *row; row++)
      if (!strcmp(*row, op)) return true;
  for (int n = 0; graph && n < graph->node_count; n++)
    if (!strcmp(graph->nodes[n].as_is.op, op) ||
        (graph->nodes[n].renamed.op && !strcmp(graph->nodes[n].renamed.op, op)))
      return true;
  return false;
}

/* Names the ops of the list: "Conv2D, MatMul, ...". Without memory there is no warning. */
static void warn_unknown(const mix_amp_lists *lists, mix_amp_class class, const char *op,
                         const mix_amp_graph *graph) {
  int count;
  const char **ops = mix_amp_lists_ops(lists, class, &count);
  size_t size = 1;
  for (int i = 0; ops && i < count; i++) size += strlen(ops[i]) + 2;
  char *text = ops ? mix_alloc(size) : NULL;
  if (text) {
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < count; i++)
      used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", ops[i]);
    mix_log_message(
        MIX_LOG_WARNING,
        "mixed precision rewrite: %s%san edit of the %s list names '%s', which is in no list and in no node "
        "of the graph (names stand between commas; blanks count); the %s list has: %s",
        graph ? graph->label : "", graph ? ": " : "", class_names[class], op, class_names[class], text);
  }
  mix_free(text);
  mix_free(ops);
}

/* Adds or removes the names of a comma-separated list. */
static bool edit(mix_amp_lists *lists, mix_amp_class class, const char *names, bool add,
                 const mix_amp_graph *graph) {
  while (names && *names) {
    const char *end = names + strcspn(names, ",");
    size_t length = (size_t)(end - names);
    char *op = lists->texts + lists->text_used;
    memcpy(op, names, length);
    op[length] = 0;
    lists->text_used += (int)length + 1;
    names = *end ? end + 1 : end;
    if (length == 0) continue;
    int *classes = add ? mix_amp_names_add(&lists->classes, op) : mix_amp_names_find(&lists->classes, op);
    if (mix_failed()) return false;
    if (!known(op, graph)) {
      warn_unknown(lists, class, op, graph);
      if (!lists->unknown) lists->unknown = op;
    }
    if (mix_failed()) return false;
    if (add)
      *classes |= 1 << class;
    else if (classes)
      *classes &= ~(1 << class);
  }
  return true;
}

/* The list bits of an op that apply at the current level. */
static int in_force(const mix_amp_lists *lists, int classes) {
  if (!lists->infer_denies || !(classes & 1 << MIX_AMP_INFER)) return classes;
  return (classes & ~(1 << MIX_AMP_INFER)) | 1 << MIX_AMP_DENY;
}

static const char *first_conflict(const mix_amp_lists *lists) {
  const char *first = NULL;
  for (int i = 0; i < lists->classes.slot_count; i++) {
    const struct mix_amp_name *slot = &lists->classes.slots[i];
    const int classes = in_force(lists, slot->value);
    if (slot->text && (classes & (classes - 1)) && (!first || strcmp(slot->text, first) < 0))
      first = slot->text;
  }
  return first;
}

bool mix_amp_lists_make(mix_amp_lists *lists, const mix_amp_options *options, const mix_amp_graph *graph) {
  *lists = (mix_amp_lists){0};
  if (mix_failed()) return false;
  size_t size = 1;
  for (int i = 0; i < MIX_AMP_EDITS; i++) {
    if (options->edits[i].add) size += strlen(options->edits[i].add) + 2;
    if (options->edits[i].remove) size += strlen(options->edits[i].remove) + 2;
  }
  if (size > INT32_MAX)
    return mix_fail_value("mixed precision rewrite: the edits of the lists are longer than 2 GiB");
  lists->texts = mix_alloc(size);
  if (!lists->texts) return false;
  for (int t = 0; t < mix_amp_table_count; t++) {
    const mix_amp_table *table = &mix_amp_tables[t];
    if (!in_mode(table, options) || emptied(options, table->class)) continue;
    for (const char *const *op = table->ops; *op; op++) {
      int *classes = mix_amp_names_add(&lists->classes, *op);
      if (!classes) return false;
      *classes |= 1 << table->class;
    }
  }
  for (int i = 0; i < MIX_AMP_EDITS; i++) {
    if (emptied(options, edited[i])) continue;
    if (!edit(lists, edited[i], options->edits[i].add, true, graph) ||
        !edit(lists, edited[i], options->edits[i].remove, false, graph))
      return false;
  }
  lists->infer_denies = options->level == MIX_AMP_TREAT_INFER_AS_DENY;
  lists->conflict = first_conflict(lists);
  return true;
}

void mix_amp_lists_free(mix_amp_lists *lists) {
  mix_amp_names_free(&lists->classes);
  mix_free(lists->texts);
  *lists = (mix_amp_lists){0};
}

int mix_amp_lists_classes(const mix_amp_lists *lists, const char *op) {
  const int *classes = mix_amp_names_find(&lists->classes, op);
  return classes ? in_force(lists, *classes) : 0;
}

mix_amp_class mix_amp_lists_class(const mix_amp_lists *lists, const char *op) {
  const int classes = mix_amp_lists_classes(lists, op);
  return classes ? (mix_amp_class)__builtin_ctz((unsigned)classes) : MIX_AMP_NONE;
}

static int by_text(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **mix_amp_lists_ops(const mix_amp_lists *lists, mix_amp_class class, int *count) {
  *count = 0;
  const char **ops = mix_alloc(((size_t)lists->classes.count + 1) * sizeof *ops);
  if (!ops) return NULL;
  for (int i = 0; i < lists->classes.slot_count; i++) {
    const struct mix_amp_name *slot = &lists->classes.slots[i];
    if (slot->text && in_force(lists, slot->value) & 1 << class) ops[(*count)++] = slot->text;
  }
  qsort(ops, (size_t)*count, sizeof *ops, by_text);
  return ops;
}

bool mix_amp_lists_write(const mix_amp_lists *lists, const mix_amp_options *options, const char *id) {
  static const struct {
    const char *heading;
    mix_amp_class class;
  } parts[] = {{"AllowList", MIX_AMP_ALLOW},
               {"DenyList", MIX_AMP_DENY},
               {"InferList", MIX_AMP_INFER},
               {"ClearList", MIX_AMP_CLEAR}};
  mix_amp_lists edited_lists = *lists;
  edited_lists.infer_denies = false;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  char path[4096];
  int length = snprintf(path, sizeof path, "%s/paintbuckets_AutoMixedPrecision_%s_%lld.txt",
                        options->log_path, id, (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000);
  for (char *p = path + strlen(options->log_path) + 1; length < (int)sizeof path && *p; p++)
    if (*p == '/') *p = '_';
  FILE *file = length < (int)sizeof path ? fopen(path, "w") : NULL;
  bool ok = file != NULL;
  for (int i = 0; ok && i < 4; i++) {
    int count;
    const char **ops = mix_amp_lists_ops(&edited_lists, parts[i].class, &count);
    fprintf(file, "%s:\n", parts[i].heading);
    for (int k = 0; ops && k < count; k++) fprintf(file, "%s\n", ops[k]);
    fprintf(file, "\n");
    ok = ops != NULL;
    mix_free(ops);
  }
  if (file && fclose(file) != 0) ok = false;
  if (!ok && !mix_failed())
    mix_fail_io("mixed precision rewrite: cannot write %s (LOG_PATH): %s",
                length < (int)sizeof path ? path : options->log_path,
                length < (int)sizeof path ? strerror(errno) : "the name is too long");
  return ok;
}
