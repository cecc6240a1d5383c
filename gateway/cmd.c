#include "gateway/cmd.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

static const struct cmd cmds[] = {
    {
        .name = "call",
        .usage = "[options] TARGET METHOD [ARGS]",
        .help =
            "one call without HTTP; TARGET is dubbo://H:P/INTERFACE or INTERFACE[:VERSION][@GROUP]",
        .run = cmd_call,
    },
    {
        .name = "ls",
        .usage = "-r zookeeper://H:P [-l] [PATTERN]",
        .help = "services in the registry, -l: with providers and methods; reads only",
        .run = cmd_ls,
    },
    {
        .name = "why",
        .usage = "[-l] [--admin H:P] INTERFACE[:VERSION][@GROUP]",
        .help =
            "why calls of this service fail: registry, list, each provider, last errors; -l: methods",
        .run = cmd_why,
    },
    {
        .name = "refs",
        .usage = "[-l] [--json] [--admin H:P] [PATTERN]",
        .help = "references of the running gateway",
        .run = cmd_refs,
    },
    {
        .name = "providers",
        .usage = "[--json] [--admin H:P] [SERVICE]",
        .help = "providers of the running gateway",
        .run = cmd_providers,
    },
    {
        .name = "status",
        .usage = "[--json] [--admin H:P]",
        .help = "is the running gateway ready, and what is degraded",
        .run = cmd_status,
    },
    {
        .name = "reload",
        .usage = "[--admin H:P]",
        .help = "read the configuration again; waits for the result",
        .run = cmd_reload,
    },
    {
        .name = "schema",
        .usage = "",
        .help = "JSON Schema of the configuration file",
        .run = cmd_print_schema,
    },
    {
        .name = "man",
        .usage = "",
        .help = "manual page of the configuration file (dubbogate.yaml.5)",
        .run = cmd_print_man,
    },
};

const struct cmd *cmd_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(cmds); i++) {
        if (strcmp(cmds[i].name, name) == 0)
            return &cmds[i];
    }
    return NULL;
}

void cmd_print_help(void)
{
    printf("usage: dubbogate [-c FILE]          run in the foreground\n"
           "       dubbogate -t [-q] [-c FILE]  test the configuration\n"
           "       dubbogate -T [-c FILE]       test it and print every value in effect\n"
           "       dubbogate --version\n\n");
    for (size_t i = 0; i < ARRAY_LEN(cmds); i++)
        printf("       dubbogate %s %s\n           %s\n", cmds[i].name, cmds[i].usage,
               cmds[i].help);
}

static const char *nearest(const char *option, const char *const *known, unsigned n_known)
{
    const char *best = NULL;
    size_t best_distance = strlen(option) / 3 > 1 ? strlen(option) / 3 : 1;

    for (unsigned i = 0; i < n_known; i++) {
        size_t d = str_distance(str_from(option), str_from(known[i]));

        if (d <= best_distance) {
            best = known[i];
            best_distance = d;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(cmds) && best == NULL; i++) {
        if (str_distance(str_from(option), str_from(cmds[i].name)) <= best_distance)
            best = cmds[i].name;
    }
    return best;
}

int cmd_unknown_option(const char *option, const char *const *known, unsigned n_known)
{
    const char *best = nearest(option, known, n_known);

    fprintf(stderr, "dubbogate: unknown %s \"%s\"", option[0] == '-' ? "option" : "command",
            option);
    if (best != NULL)
        fprintf(stderr, "; did you mean \"%s\"?\n", best);
    else
        fprintf(stderr, "; dubbogate --help lists what there is\n");
    return EXIT_USAGE;
}
