/* Layered layout (Sugiyama, Tagawa, Toda 1981): ranks by the longest path, order by the mean of the
 * neighbours, places that are nearest to the neighbours' among those that keep order and distances. */
#include "base/alloc.h"
#include "cli/drawing/drawing.h"

#include <string.h>

enum { SWEEPS = 8, BETWEEN = 16, BEFORE_EDGES = 14, LANE = 5 };

/* ---- ranks ---- */

/* Edges lead from a node to a later one. */
static void rank_nodes(drawing *d) {
  for (int e = 0; e < d->edge_count; e++) { /* sorted by their ends */
    const drawing_node *from = &d->nodes[d->edges[e].from];
    drawing_node *to = &d->nodes[d->edges[e].to];
    if (to->rank <= from->rank) to->rank = from->rank + 1;
  }
  for (int i = 0; i < d->node_count; i++)
    if (d->nodes[i].rank >= d->rank_count) d->rank_count = d->nodes[i].rank + 1;
}

/* Splits edges over several ranks; those of one source share their waypoints. */
static bool add_waypoints(drawing *d) {
  const int edges = d->edge_count, nodes = d->node_count;
  bool good = true;
  int *last = mix_calloc((size_t)nodes + 1, sizeof *last); /* of each node: its waypoints' chain so far */
  if (!last) return false;
  for (int i = 0; i < nodes; i++) last[i] = -1;
  for (int e = 0; e < edges && good; e++) {
    const int from = d->edges[e].from, to = d->edges[e].to;
    int at = from;
    for (int rank = d->nodes[from].rank + 1; rank < d->nodes[to].rank && good; rank++) {
      /* waypoints of a source are made in order of rank, each with the one before it in `lane` */
      int found = last[from];
      while (found >= 0 && d->nodes[found].rank > rank) found = d->nodes[found].lane;
      if (found < 0 || d->nodes[found].rank < rank) {
        found = drawing_add_node(d);
        if (found < 0 || !drawing_add_edge(d, at, found)) good = false;
        if (!good) break;
        d->nodes[found].waypoint = true;
        d->nodes[found].rank = rank;
        d->nodes[found].lane = last[from];
        last[from] = found;
      }
      at = found;
    }
    d->edges[e].from = at;
  }
  for (int i = 0; i < d->node_count; i++) d->nodes[i].lane = 0;
  mix_free(last);
  return good;
}

/* ---- order ---- */

/* The nodes of each rank from left to right, and the neighbours of each node. */
typedef struct layout {
  drawing *d;
  int *nodes, *first;       /* of rank r: first[r] to first[r + 1] */
  int *above, *above_first; /* sources of node i: above_first[i] to above_first[i + 1] */
  int *below, *below_first;
  double *wish, *weight, *place; /* of nodes in a rank */
  int *block;
} layout;

/* Lists of `key` by node or rank: counting sort. */
static void list_by(int count, const int *keys, const int *values, int items, int *lists, int *first) {
  memset(first, 0, ((size_t)count + 1) * sizeof *first);
  for (int i = 0; i < items; i++) first[keys[i] + 1]++;
  for (int i = 0; i < count; i++) first[i + 1] += first[i];
  for (int i = 0; i < items; i++) lists[first[keys[i]]++] = values[i];
  for (int i = count; i > 0; i--) first[i] = first[i - 1];
  first[0] = 0;
}

static bool begin(layout *l, drawing *d) {
  const size_t n = (size_t)d->node_count + 2, e = (size_t)d->edge_count + 1, keys = n > e ? n : e;
  *l = (layout){.d = d};
  int *key = mix_calloc(2 * keys, sizeof *key), *value = key + keys;
  int **const lists[] = {&l->nodes, &l->first, &l->above_first, &l->below_first, &l->block};
  for (int i = 0; i < 5; i++) *lists[i] = mix_calloc(n, sizeof(int));
  l->above = mix_calloc(e, sizeof(int)), l->below = mix_calloc(e, sizeof(int));
  double **const numbers[] = {&l->wish, &l->weight, &l->place};
  for (int i = 0; i < 3; i++) *numbers[i] = mix_calloc(n, sizeof(double));
  const bool good = key && l->nodes && l->first && l->above_first && l->below_first && l->block && l->above &&
                    l->below && l->wish && l->weight && l->place;
  if (good) {
    for (int i = 0; i < d->node_count; i++) key[i] = d->nodes[i].rank, value[i] = i;
    list_by(d->rank_count, key, value, d->node_count, l->nodes, l->first);
    for (int i = 0; i < d->edge_count; i++) key[i] = d->edges[i].to, value[i] = d->edges[i].from;
    list_by(d->node_count, key, value, d->edge_count, l->above, l->above_first);
    for (int i = 0; i < d->edge_count; i++) key[i] = d->edges[i].from, value[i] = d->edges[i].to;
    list_by(d->node_count, key, value, d->edge_count, l->below, l->below_first);
  }
  mix_free(key);
  return good;
}

static void end(layout *l) {
  void *const memory[] = {l->nodes,       l->first, l->above,  l->above_first, l->below,
                          l->below_first, l->wish,  l->weight, l->place,       l->block};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) mix_free(memory[i]);
}

/* The mean centre of a node's neighbours on one side; its own without any. */
static double mean_of(const layout *l, int node, bool from_above) {
  const int *list = from_above ? l->above : l->below, *first = from_above ? l->above_first : l->below_first;
  double sum = 0;
  for (int i = first[node]; i < first[node + 1]; i++) sum += l->d->nodes[list[i]].centre;
  const int count = first[node + 1] - first[node];
  return count ? sum / count : l->d->nodes[node].centre;
}

static void renumber(layout *l, int rank) {
  for (int i = l->first[rank]; i < l->first[rank + 1]; i++)
    l->d->nodes[l->nodes[i]].order = i - l->first[rank];
}

/* Insertion sort, because ranks are nearly in order. */
static void order_rank(layout *l, int rank, bool from_above) {
  for (int i = l->first[rank]; i < l->first[rank + 1]; i++)
    l->wish[l->nodes[i]] = mean_of(l, l->nodes[i], from_above);
  for (int i = l->first[rank] + 1; i < l->first[rank + 1]; i++) {
    const int node = l->nodes[i];
    int at = i;
    for (; at > l->first[rank] && l->wish[l->nodes[at - 1]] > l->wish[node]; at--)
      l->nodes[at] = l->nodes[at - 1];
    l->nodes[at] = node;
  }
  renumber(l, rank);
}

/* ---- places ---- */

static double distance(const layout *l, int a, int b) {
  return (l->d->nodes[a].width + l->d->nodes[b].width) / 2.0 + BETWEEN;
}

/* The centres nearest to the means of the neighbours that keep the order: with the distances taken off, the
 * least squares of a sequence that must not fall, by pooling what violates it. */
static void place_rank(layout *l, int rank, bool from_above) {
  const int first = l->first[rank], count = l->first[rank + 1] - first;
  double offset = 0;
  int blocks = 0;
  for (int i = 0; i < count; i++) {
    const int node = l->nodes[first + i];
    if (i) offset += distance(l, l->nodes[first + i - 1], node);
    l->place[i] = offset;
    l->wish[blocks] = mean_of(l, node, from_above) - offset;
    l->weight[blocks] = 1;
    l->block[blocks++] = i;
    for (; blocks > 1 && l->wish[blocks - 2] > l->wish[blocks - 1]; blocks--) {
      const double a = l->weight[blocks - 2], b = l->weight[blocks - 1];
      l->wish[blocks - 2] = (a * l->wish[blocks - 2] + b * l->wish[blocks - 1]) / (a + b);
      l->weight[blocks - 2] = a + b;
    }
  }
  for (int b = 0; b < blocks; b++) {
    const int past = b + 1 < blocks ? l->block[b + 1] : count;
    for (int i = l->block[b]; i < past; i++)
      l->d->nodes[l->nodes[first + i]].centre = l->wish[b] + l->place[i];
  }
}

static void size_nodes(drawing *d) {
  for (int i = 0; i < d->node_count; i++) {
    drawing_node *node = &d->nodes[i];
    size_t letters = 0;
    for (int line = 0; line < DRAWING_LINES; line++)
      if (strlen(node->lines[line]) > letters) letters = strlen(node->lines[line]);
    node->width = node->waypoint ? 2 : (int)letters * DRAWING_LETTER + 2 * DRAWING_MARGIN;
    node->height = node->waypoint ? 0 : drawing_line_count(node) * DRAWING_LINE + DRAWING_MARGIN;
  }
}

/* Sideways parts of edges below a rank have a lane for each source. */
static int number_lanes(const layout *l, int rank) {
  int lanes = 0;
  for (int i = l->first[rank]; i < l->first[rank + 1]; i++) {
    const int node = l->nodes[i];
    if (l->below_first[node + 1] > l->below_first[node]) l->d->nodes[node].lane = ++lanes;
  }
  return lanes;
}

static void place_vertically(const layout *l) {
  int y = DRAWING_MARGIN;
  for (int rank = 0; rank < l->d->rank_count; rank++) {
    int height = 0;
    for (int i = l->first[rank]; i < l->first[rank + 1]; i++)
      if (l->d->nodes[l->nodes[i]].height > height) height = l->d->nodes[l->nodes[i]].height;
    for (int i = l->first[rank]; i < l->first[rank + 1]; i++) {
      l->d->nodes[l->nodes[i]].y = y;
      if (l->d->nodes[l->nodes[i]].waypoint) l->d->nodes[l->nodes[i]].height = height;
      l->d->nodes[l->nodes[i]].order = height; /* of the rank, for the edges that leave it */
    }
    y += height;
    l->d->height = y + DRAWING_MARGIN;
    y += 2 * BEFORE_EDGES + LANE * number_lanes(l, rank);
  }
}

static void shift(drawing *d) {
  double left = 0, right = 0;
  for (int i = 0; i < d->node_count; i++) {
    const drawing_node *node = &d->nodes[i];
    if (!i || node->centre - node->width / 2.0 < left) left = node->centre - node->width / 2.0;
    if (!i || node->centre + node->width / 2.0 > right) right = node->centre + node->width / 2.0;
  }
  for (int i = 0; i < d->node_count; i++) d->nodes[i].centre += DRAWING_MARGIN - left;
  d->width = (int)(right - left) + 2 * DRAWING_MARGIN;
}

int drawing_edge_height(const drawing *d, const drawing_edge *edge) {
  const drawing_node *from = &d->nodes[edge->from];
  return from->y + from->order + BEFORE_EDGES + LANE * (from->lane - 1);
}

bool drawing_lay_out(drawing *d) {
  layout l = {0};
  rank_nodes(d);
  if (!add_waypoints(d)) return false;
  size_nodes(d);
  const bool good = begin(&l, d);
  for (int rank = 0; good && rank < d->rank_count; rank++) renumber(&l, rank), place_rank(&l, rank, true);
  for (int sweep = 0; good && sweep < SWEEPS; sweep++)
    for (int i = 0; i < d->rank_count; i++) {
      const bool down = sweep % 2 == 0, orders = sweep < SWEEPS / 2;
      const int rank = down ? i : d->rank_count - 1 - i;
      if (orders) order_rank(&l, rank, down);
      place_rank(&l, rank, down);
    }
  if (good) place_vertically(&l), shift(d);
  end(&l);
  return good;
}
