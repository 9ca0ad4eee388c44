/* A graph as nodes of ONNX. */
#pragma once

#include "onnx/emit.h"

/* Writes the nodes of e->ir, whose arguments have names. False with the error recorded, or e->failed. */
bool mix_onnx_emit_nodes(mix_onnx_emitter *e);
/* The name of a value after that, also of a weight that is a result. */
const char *mix_onnx_value_name(mix_onnx_emitter *e, int value);
/* Are they the same nodes, of perhaps other sizes? */
bool mix_onnx_same_graph(const mix_ir *a, const mix_ir *b);
