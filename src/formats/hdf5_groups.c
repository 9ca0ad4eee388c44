/* Groups of HDF5 files: symbol tables, and compact and dense links. */
#include "formats/hdf5_inside.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/key_map.h"
#include <stdlib.h>
#include <string.h>

/* A link: borrowed name, not ended by 0. */
typedef bool on_link(void *context, const char *name, size_t length, uint64_t header);

typedef struct links {
  mix_hdf5 *file;
  on_link *visit;
  void *context;
  bool is_group;
} links;

/* ---- link messages ---- */

static bool read_link(void *context, mix_span span) {
  links *l = context;
  if (mix_span_number(&span, 1) != 1) return mix_hdf5_unsupported(l->file, "links of a new version");
  const int flags = (int)mix_span_number(&span, 1);
  const int kind = flags & 8 ? (int)mix_span_number(&span, 1) : 0;
  mix_span_skip(&span, (flags & 4 ? 8 : 0) + (flags & 16 ? 1 : 0));
  const mix_span name = mix_span_take(&span, mix_span_number(&span, 1 << (flags & 3)));
  if (kind == 1) return mix_hdf5_unsupported(l->file, "soft links");
  if (kind != 0) return mix_hdf5_unsupported(l->file, "external links");
  const uint64_t header = mix_span_number(&span, 8);
  if (span.short_ || name.short_) return mix_hdf5_damaged(l->file, "a link is cut off");
  return l->visit(l->context, (const char *)name.at, name.left, header);
}

static bool read_link_info(links *l, mix_span span) {
  mix_span_skip(&span, 1);
  mix_span_skip(&span, mix_span_number(&span, 1) & 1 ? 8 : 0);
  const uint64_t heap = mix_span_number(&span, 8), index = mix_span_number(&span, 8);
  if (span.short_) return mix_hdf5_damaged(l->file, "a group's links are cut off");
  return heap == MIX_HDF5_NOWHERE || mix_hdf5_dense(l->file, heap, index, 4, read_link, l);
}

/* ---- symbol tables ---- */

typedef struct table {
  links *links;
  const char *names; /* the local heap */
  size_t names_size;
} table;

static bool read_local_heap(mix_hdf5 *file, uint64_t address, table *t) {
  mix_span span, names;
  if (!mix_hdf5_block(file, address, "HEAP", &span)) return false;
  mix_span_skip(&span, 4);
  const uint64_t size = mix_span_number(&span, 8);
  mix_span_skip(&span, 8);
  const uint64_t data = mix_span_number(&span, 8);
  if (span.short_ || !mix_hdf5_span(file, data, size, &names))
    return mix_hdf5_damaged(file, "a group's names are cut off");
  t->names = (const char *)names.at;
  t->names_size = names.left;
  return true;
}

static bool read_symbols(const table *t, uint64_t address) {
  mix_hdf5 *file = t->links->file;
  mix_span span;
  if (!mix_hdf5_block(file, address, "SNOD", &span)) return false;
  mix_span_skip(&span, 2);
  const uint64_t count = mix_span_number(&span, 2);
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t name = mix_span_number(&span, 8), header = mix_span_number(&span, 8);
    const uint64_t cache = mix_span_number(&span, 4);
    mix_span_skip(&span, 20);
    if (span.short_ || name >= t->names_size) return mix_hdf5_damaged(file, "a group's entry is cut off");
    if (cache == 2) return mix_hdf5_unsupported(file, "soft links");
    const size_t length = strnlen(t->names + name, t->names_size - name);
    if (!t->links->visit(t->links->context, t->names + name, length, header)) return false;
  }
  return true;
}

static bool read_tree(const table *t, uint64_t address, int depth) {
  mix_hdf5 *file = t->links->file;
  mix_span span;
  if (depth > 16) return mix_hdf5_damaged(file, "a group is too deep");
  if (!mix_hdf5_block(file, address, "TREE", &span)) return false;
  const uint64_t kind = mix_span_number(&span, 1), level = mix_span_number(&span, 1);
  const uint64_t count = mix_span_number(&span, 2);
  if (kind != 0) return mix_hdf5_damaged(file, "a group's tree is that of a data set");
  mix_span_skip(&span, 16);
  for (uint64_t i = 0; i < count; i++) {
    mix_span_skip(&span, 8);
    const uint64_t child = mix_span_number(&span, 8);
    if (span.short_) return mix_hdf5_damaged(file, "a group's tree is cut off");
    if (!(level ? read_tree(t, child, depth + 1) : read_symbols(t, child))) return false;
  }
  return true;
}

static bool read_symbol_table(links *l, mix_span span) {
  table t = {.links = l};
  const uint64_t tree = mix_span_number(&span, 8), heap = mix_span_number(&span, 8);
  if (span.short_) return mix_hdf5_damaged(l->file, "a symbol table is cut off");
  return read_local_heap(l->file, heap, &t) && read_tree(&t, tree, 0);
}

/* ---- all links of a group ---- */

static bool on_message(void *context, int type, mix_span body) {
  links *l = context;
  l->is_group |= type == MIX_HDF5_LINK || type == MIX_HDF5_LINK_INFO || type == MIX_HDF5_SYMBOL_TABLE;
  if (!l->visit) return true;
  if (type == MIX_HDF5_LINK) return read_link(l, body);
  if (type == MIX_HDF5_LINK_INFO) return read_link_info(l, body);
  return type != MIX_HDF5_SYMBOL_TABLE || read_symbol_table(l, body);
}

static bool is_group(mix_hdf5 *file, uint64_t header) {
  links l = {.file = file};
  return mix_hdf5_messages(file, header, on_message, &l) && l.is_group;
}

/* ---- links in the order of their names ---- */

typedef struct entry {
  char *name;
  uint64_t header;
} entry;

typedef struct listing {
  entry *entries;
  int count, capacity;
  const mix_hdf5 *file;
  size_t size; /* the bytes that the links have in the file at least: their names and addresses */
} listing;

static bool add_entry(void *context, const char *name, size_t length, uint64_t header) {
  listing *l = context;
  /* in hostile files links share names */
  if ((l->size += length + 8) > l->file->size)
    return mix_hdf5_damaged(l->file, "a group's links have more names than the file has room for");
  if (!mix_reserve(&l->entries, &l->capacity, l->count + 1, sizeof *l->entries)) return false;
  char *copy = mix_alloc(length + 1);
  if (!copy) return false;
  memcpy(copy, name, length);
  copy[length] = 0;
  l->entries[l->count++] = (entry){copy, header};
  return true;
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const entry *)a)->name, ((const entry *)b)->name);
}

static void free_listing(listing *l) {
  for (int i = 0; i < l->count; i++) mix_free(l->entries[i].name);
  mix_free(l->entries);
  *l = (listing){0};
}

/* The caller frees it, also after an error. */
static bool list_links(mix_hdf5 *file, uint64_t group, listing *l) {
  links all = {.file = file, .visit = add_entry, .context = l};
  *l = (listing){.file = file};
  const bool good = mix_hdf5_messages(file, group, on_message, &all) && !mix_failed();
  if (good && l->count > 1) qsort(l->entries, (size_t)l->count, sizeof *l->entries, by_name);
  return good;
}

/* ---- large groups ---- */

/* A path is found in the links of each group on its way, so that those of large groups are kept. */
enum { FEW_LINKS = 64 };

struct mix_hdf5_index {
  mix_key_map places; /* of the groups' headers in `groups` */
  listing *groups;
  int count, capacity;
  size_t size; /* of all of them */
};

static void forget_groups(mix_hdf5 *file) {
  struct mix_hdf5_index *index = file->index;
  for (int i = 0; index && i < index->count; i++) free_listing(&index->groups[i]);
  if (index) mix_free(index->groups);
  if (index) mix_key_map_clear(&index->places);
  mix_free(index);
  file->index = NULL;
}

void mix_hdf5_close(mix_hdf5 *file) { forget_groups(file); }

static const listing *known_group(const mix_hdf5 *file, uint64_t group) {
  const int place = file->index ? mix_key_map_get(&file->index->places, group) : -1;
  return place < 0 ? NULL : &file->index->groups[place];
}

/* Only in hostile files groups share links; there the oldest are forgotten. */
static const listing *learn_group(mix_hdf5 *file, uint64_t group) {
  if (file->index && file->index->size > file->size) forget_groups(file);
  if (!file->index && !(file->index = mix_calloc(1, sizeof *file->index))) return NULL;
  struct mix_hdf5_index *index = file->index;
  if (!mix_reserve(&index->groups, &index->capacity, index->count + 1, sizeof *index->groups)) return NULL;
  listing *l = &index->groups[index->count];
  if (list_links(file, group, l) && mix_key_map_set(&index->places, group, index->count)) {
    index->size += l->size;
    index->count++;
    return l;
  }
  free_listing(l);
  return NULL;
}

/* ---- paths ---- */

typedef struct lookup {
  const char *name;
  size_t length;
  uint64_t header;
  bool found;
  int others; /* links that are not it */
} lookup;

static bool is_named(void *context, const char *name, size_t length, uint64_t header) {
  lookup *l = context;
  if (length != l->length || memcmp(name, l->name, length)) return ++l->others <= FEW_LINKS;
  l->found = true;
  l->header = header;
  return false;
}

static void find_sorted(const listing *group, lookup *l) {
  int low = 0, high = group->count;
  while (low < high && !l->found) {
    const int middle = low + (high - low) / 2;
    const entry *link = &group->entries[middle];
    int order = strncmp(l->name, link->name, l->length);
    if (!order && link->name[l->length]) order = -1;
    if (!order) l->found = true, l->header = link->header;
    if (order < 0) high = middle;
    if (order > 0) low = middle + 1;
  }
}

static void find_link(mix_hdf5 *file, uint64_t group, lookup *l) {
  const listing *known = known_group(file, group);
  if (!known) {
    links all = {.file = file, .visit = is_named, .context = l};
    mix_hdf5_messages(file, group, on_message, &all);
    if (mix_failed() || l->others <= FEW_LINKS) return;
    known = learn_group(file, group);
  }
  if (known) find_sorted(known, l);
}

bool mix_hdf5_resolve(mix_hdf5 *file, const char *path, uint64_t *header) {
  *header = file->root;
  for (const char *part = path; *part && !mix_failed();) {
    lookup l = {.name = part, .length = strcspn(part, "/")};
    part += l.length + (part[l.length] == '/');
    if (l.length == 0) continue;
    find_link(file, *header, &l);
    if (mix_failed() || !l.found) return false;
    *header = l.header;
  }
  return !mix_failed();
}

/* ---- what callers see ---- */

bool mix_hdf5_has(mix_hdf5 *file, const char *path) {
  uint64_t header;
  mix_hdf5_begin(file);
  return !mix_failed() && mix_hdf5_resolve(file, path, &header);
}

bool mix_hdf5_list(mix_hdf5 *file, const char *path, mix_hdf5_visit *visit, void *context) {
  uint64_t header;
  mix_hdf5_begin(file);
  if (mix_failed()) return false;
  if (!mix_hdf5_resolve(file, path, &header))
    return mix_fail_format("%s: no group '%s' in the file", file->name, path);
  listing l;
  bool good = list_links(file, header, &l);
  for (int i = 0; i < l.count && good; i++)
    good = visit(context, l.entries[i].name, is_group(file, l.entries[i].header)) && !mix_failed();
  free_listing(&l);
  return good;
}
