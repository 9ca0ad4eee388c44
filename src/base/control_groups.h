/* The control groups that this process is in, of both versions. */
#pragma once

#include <stdbool.h>

/* `folder`: of a group, under its mount point. */
typedef void mix_control_group_visit(void *context, const char *folder, int version);
/* Visits the group of this process and all groups around it, as far as they are mounted: of version 2, and of
 * version 1 those of the controller ("cpu"). `root` stands before all paths: "", or a test's folder. */
void mix_visit_control_groups(const char *root, const char *controller, mix_control_group_visit *visit,
                              void *context);
/* The first line of a group's file, without its end. False: it cannot be read. */
bool mix_read_first_line(const char *folder, const char *file, char *line, int size);
