/*
 * The command line: one row per subcommand (docs/OPERATIONS.md section 3).
 */
#pragma once

#include "base/compiler.h"

enum exit_code {
    EXIT_GOOD = 0,
    EXIT_LOCAL = 1, /* configuration or local failure */
    EXIT_USAGE = 2,
    EXIT_NO_DAEMON = 3,   /* admin address not reachable */
    EXIT_NO_PROVIDER = 4, /* call: no provider, or registry not reachable */
    EXIT_TIMEOUT = 5,
    EXIT_EXCEPTION = 6,  /* call: the method threw */
    EXIT_REFUSED = 7,    /* call: unknown method, bad arguments */
    EXIT_CONNECTION = 8, /* call: connection or protocol failure */
};

struct cmd {
    const char *name;
    const char *usage;                 /* what follows the name */
    const char *help;                  /* one line */
    int (*run)(int argc, char **argv); /* argv[0] is the name */
};

/* NULL when there is none of that name. */
const struct cmd *cmd_find(const char *name) NONNULL;
/* Prints to stdout. */
void cmd_print_help(void);
/* `dubbogate: unknown option "--chek"; did you mean "--check"?`  Returns EXIT_USAGE. */
int cmd_unknown_option(const char *option, const char *const *known, unsigned n_known) NONNULL;

int cmd_call(int argc, char **argv);
int cmd_ls(int argc, char **argv);
int cmd_refs(int argc, char **argv);
int cmd_providers(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_reload(int argc, char **argv);
int cmd_why(int argc, char **argv);
int cmd_print_schema(int argc, char **argv);
int cmd_print_man(int argc, char **argv);
