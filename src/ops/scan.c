/* scan: a loop over the first axis of its inputs. Nodes come from mix_scan (compile/scan.c). */
#include "ops/scan.h"

#include "ops/rules.h"

static const mix_attribute_row scan_fields[] = {
    {"steps", MIX_ATTRIBUTE_INT64, offsetof(mix_scan_attributes, steps)},
    {"carries", MIX_ATTRIBUTE_INT, offsetof(mix_scan_attributes, carries)},
    {"inputs", MIX_ATTRIBUTE_INT, offsetof(mix_scan_attributes, inputs)},
    {"reverse", MIX_ATTRIBUTE_BOOL, offsetof(mix_scan_attributes, reverse)},
    {NULL}};

/* Its nodes come from mix_scan_build alone, which sets their types. */
static bool scan_infer(mix_node *node) { return mix_rule_fail(node, "a loop needs a body"), false; }

const mix_op mix_op_scan = {.name = "scan",
                            .signature = "->",
                            .flags = MIX_OP_LOOP | MIX_OP_CHECKS_VALUES,
                            .attributes_size = sizeof(mix_scan_attributes),
                            .infer = scan_infer,
                            .gradient = mix_scan_gradient,
                            .fields = scan_fields};
