/* Drawings of models: a graph of boxes in ranks from top to bottom, as graphviz text, SVG or PNG. */
#ifndef MIX_CLI_DRAWING_DRAWING_H
#define MIX_CLI_DRAWING_DRAWING_H

#include "model/model.h"

enum { DRAWING_LINES = 3, DRAWING_LETTER = 6, DRAWING_LINE = 13, DRAWING_MARGIN = 8 };

/* A box, or a point on an edge that passes a rank. Lengths are in units: a letter is DRAWING_LETTER wide. */
typedef struct drawing_node {
  char lines[DRAWING_LINES][256]; /* empty ones at the end are left out */
  uint32_t colour;                /* 0xRRGGBB */
  bool waypoint;
  int rank, order; /* from the top; from the left */
  int lane;        /* where its edges run sideways below its rank; 0: they do not */
  double centre;   /* x */
  int y, width, height;
} drawing_node;

typedef struct drawing_edge {
  int from, to;
} drawing_edge;

typedef struct drawing {
  drawing_node *nodes;
  drawing_edge *edges;
  int node_count, node_capacity, edge_count, edge_capacity;
  int rank_count, width, height;
} drawing;

/* model.c: a box for each call of a layer. False with the error recorded. */
bool drawing_of_model(drawing *d, mix_model *model);
void drawing_free(drawing *d);
/* Appends; -1, or false, with the error recorded. */
int drawing_add_node(drawing *d);
bool drawing_add_edge(drawing *d, int from, int to);
/* The lines of a box that are not empty. */
int drawing_line_count(const drawing_node *node);

/* layout.c: ranks, order and places; edges over several ranks get waypoints. */
bool drawing_lay_out(drawing *d);
/* The height at which the edge runs sideways. */
int drawing_edge_height(const drawing *d, const drawing_edge *edge);

/* The text of graphviz or SVG; mix_free it. NULL with the error recorded. */
char *drawing_dot(const drawing *d);
char *drawing_svg(const drawing *d);
bool drawing_write_png(const drawing *d, const char *path);

#endif
